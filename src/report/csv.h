// Comma-separated values (RFC 4180), for spreadsheets and scripts.
#pragma once
#include <string>
#include <vector>

namespace octet::report {

// A line for the columns and one for each row, with newlines; cells that hold commas, quotes or line ends are quoted.
std::string csv(const std::vector<std::string>& columns, const std::vector<std::vector<std::string>>& rows);

// A number with all its digits, so that reading it gives it back; empty for what is not finite.
std::string csv_number(double value);

}  // namespace octet::report

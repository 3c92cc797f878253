// Tables in plain text for terminals and logs, or in Markdown.
#pragma once
#include <string>
#include <vector>

namespace octet::report {

enum class Align { kAuto, kLeft, kRight };  // kAuto: right if every cell of the column is a number or empty

// A number with optional sign, unit after a space ("1.2 ms"), "%" or "x"; also "-".
bool looks_numeric(const std::string& cell);

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> columns, std::vector<Align> align = {});

  // Missing cells at the end are empty; more cells than columns are an error.
  void add_row(std::vector<std::string> cells);
  // A line across, for example before a sum.
  void add_rule();

  size_t rows() const { return rows_.size(); }

  // Two spaces between columns, a line under the titles, no trailing spaces, a newline after each row.
  std::string text() const;
  std::string markdown() const;

 private:
  std::vector<bool> right_aligned() const;

  std::vector<std::string> columns_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;  // an empty vector is a rule
};

}  // namespace octet::report

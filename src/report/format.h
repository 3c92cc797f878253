// Numbers as people read them; the same in terminals, logs and the HTML report.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace octet::report {

std::string fixed(double value, int digits);        // "12.50"; "-" for NaN
std::string significant(double value, int digits);  // "0.0123", "1.5e-09"; "-" for NaN
std::string human_bytes(double bytes);              // "1.21 MB", powers of 1000
std::string human_count(double count);              // "272.5 k", "4.09 M", "1.82 G"
std::string human_duration(double seconds);  // "0.42 s", "42 s", "3:07", "1:02:45"; "-" if negative or not finite

// Columns that a terminal needs for UTF-8 text (one per code point).
size_t display_width(std::string_view text);

}  // namespace octet::report

// Numbers and lines in texts of annotations.
#pragma once
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace octet::data {

inline std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// The whole text as a number, also "nan" and "inf", which are no coordinates but are written by broken tools; one too
// large for a float is infinite.
inline std::optional<float> parse_float(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc::result_out_of_range ? HUGE_VALF : value;
}

}  // namespace octet::data

#include "report/format.h"

#include <cmath>
#include <cstdio>

namespace octet::report {
namespace {

std::string print(const char* format, int digits, double value) {
  char buffer[400];  // %f of the largest double has 309 digits
  std::snprintf(buffer, sizeof(buffer), format, digits, value);
  return buffer;
}

std::string scaled(double value, const char* const* units, int count) {
  int unit = 0;
  while (unit + 1 < count && std::abs(value) >= 999.5) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0 && value == std::floor(value)) return print("%.*f", 0, value) + units[0];
  return print("%.*f", std::abs(value) >= 99.95 ? 0 : std::abs(value) >= 9.995 ? 1 : 2, value) + units[unit];
}

}  // namespace

std::string fixed(double value, int digits) {
  return std::isnan(value) ? "-" : print("%.*f", digits, value);
}

std::string significant(double value, int digits) {
  return std::isnan(value) ? "-" : print("%.*g", digits, value);
}

std::string human_bytes(double bytes) {
  static const char* const kUnits[] = {" B", " kB", " MB", " GB", " TB"};
  return scaled(bytes, kUnits, 5);
}

std::string human_count(double count) {
  static const char* const kUnits[] = {"", " k", " M", " G", " T"};
  return scaled(count, kUnits, 5);
}

std::string human_duration(double seconds) {
  if (!(seconds >= 0) || std::isinf(seconds)) return "-";
  if (seconds < 9.995) return print("%.*f", 2, seconds) + " s";
  if (seconds < 59.5) return print("%.*f", 0, seconds) + " s";
  if (seconds > 3.6e9) return "-";  // beyond any run; keeps the cast below in range
  const long long total = std::llround(seconds);
  char buffer[64];
  if (total < 3600)
    std::snprintf(buffer, sizeof(buffer), "%lld:%02lld", total / 60, total % 60);
  else
    std::snprintf(buffer, sizeof(buffer), "%lld:%02lld:%02lld", total / 3600, total / 60 % 60, total % 60);
  return buffer;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

}  // namespace octet::report

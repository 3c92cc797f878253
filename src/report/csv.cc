#include "report/csv.h"

#include <charconv>
#include <cmath>

namespace octet::report {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

void add_line(std::string& out, const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) out += (i > 0 ? "," : "") + quoted(cells[i]);
  out += '\n';
}

}  // namespace

std::string csv(const std::vector<std::string>& columns, const std::vector<std::vector<std::string>>& rows) {
  std::string out;
  add_line(out, columns);
  for (const std::vector<std::string>& row : rows) add_line(out, row);
  return out;
}

std::string csv_number(double value) {
  if (!std::isfinite(value)) return {};
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

}  // namespace octet::report

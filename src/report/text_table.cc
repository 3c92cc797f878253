#include "report/text_table.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "report/format.h"

namespace octet::report {
namespace {

void append_cell(std::string& line, const std::string& cell, size_t width, bool right) {
  const size_t fill = width - std::min(width, display_width(cell));
  if (right) line.append(fill, ' ');
  line += cell;
  if (!right) line.append(fill, ' ');
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

std::string escape_markdown(const std::string& cell) {
  std::string out;
  for (char c : cell) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

bool looks_numeric(const std::string& cell) {
  if (cell == "-") return true;
  if (cell.empty() || std::isspace(static_cast<unsigned char>(cell[0]))) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  if (end == cell.c_str()) return false;
  const std::string rest(end);
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  if (rest.empty() || rest == "%" || rest == "x") return true;
  // A unit: one short word after a space; or a duration's further fields ("1:02:45").
  if (rest[0] == ' ') return rest.size() <= 9 && rest.find(' ', 1) == std::string::npos && !digit(rest[1]);
  return rest[0] == ':' && std::all_of(rest.begin(), rest.end(), [&](char c) { return c == ':' || digit(c); });
}

TextTable::TextTable(std::vector<std::string> columns, std::vector<Align> align)
    : columns_(std::move(columns)), align_(std::move(align)) {
  for (std::string& column : columns_) column = printable_line(column);
  OCTET_CHECK(align_.size() <= columns_.size());
  align_.resize(columns_.size(), Align::kAuto);
}

void TextTable::add_row(std::vector<std::string> cells) {
  OCTET_CHECK(!cells.empty() && cells.size() <= columns_.size(), cells.size(), " cells for ", columns_.size(),
              " columns");
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable_line(cell);
  rows_.push_back(std::move(cells));
}

void TextTable::add_rule() {
  rows_.emplace_back();
}

std::vector<bool> TextTable::right_aligned() const {
  std::vector<bool> out;
  for (size_t c = 0; c < columns_.size(); ++c) {
    bool any = false, all = true;
    for (const auto& row : rows_)
      if (!row.empty() && !row[c].empty()) {
        any = true;
        all = all && looks_numeric(row[c]);
      }
    out.push_back(align_[c] == Align::kRight || (align_[c] == Align::kAuto && any && all));
  }
  return out;
}

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(display_width(columns_[c]));
    for (const auto& row : rows_)
      if (!row.empty()) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  const std::vector<bool> right = right_aligned();
  std::string out, rule;
  for (size_t c = 0; c < columns_.size(); ++c) rule += (c ? "  " : "") + std::string(widths[c], '-');
  const auto append_row = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c) line += "  ";
      append_cell(line, cells[c], widths[c], right[c]);
    }
    append_line(out, std::move(line));
  };
  append_row(columns_);
  append_line(out, rule);
  for (const auto& row : rows_) row.empty() ? append_line(out, rule) : append_row(row);
  return out;
}

std::string TextTable::markdown() const {
  const std::vector<bool> right = right_aligned();
  std::string out = "|";
  for (const std::string& column : columns_) out += " " + escape_markdown(column) + " |";
  out += "\n|";
  for (bool r : right) out += r ? "---:|" : "---|";
  out += "\n";
  for (const auto& row : rows_) {
    if (row.empty()) continue;  // Markdown has no rules inside a table
    out += "|";
    for (const std::string& cell : row) out += " " + escape_markdown(cell) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace octet::report

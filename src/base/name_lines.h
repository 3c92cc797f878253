// Names, one a line, as entries of metadata hold them. A name may hold any character, so line ends are escaped.
#pragma once
#include <string>

namespace octet {

inline std::string escape_line(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

inline std::string unescape_line(const std::string& line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      out += line[i];
      continue;
    }
    ++i;
    out += line[i] == 'n' ? '\n' : line[i];
  }
  return out;
}

}  // namespace octet

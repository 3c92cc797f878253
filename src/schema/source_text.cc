#include "schema/source_text.h"

#include "base/error.h"

namespace octet::schema {

std::string place_in(const std::string& name, int line, int column) {
  return str(name, ":", line, ":", column);
}

size_t utf8_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : (first & 0xF0) == 0xE0        ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k)
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  if (length == 3 && ((first == 0xE0 && byte(i + 1) < 0xA0) || (first == 0xED && byte(i + 1) >= 0xA0))) return 0;
  if (length == 4 && ((first == 0xF0 && byte(i + 1) < 0x90) || (first == 0xF4 && byte(i + 1) >= 0x90))) return 0;
  return length;
}

void require_printable_text(std::string_view text, const std::string& name, const std::string& format) {
  if (text.size() > kLargestText) fail_usage(name, ": is larger than 1 MiB, which is no experiment file");
  int line = 1, column = 1;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = utf8_length(text, i);
    if (length == 0 || (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F)
      fail_usage(place_in(name, line, column), ": is not text (byte ", static_cast<int>(c),
                 "); an experiment file is UTF-8 ", format);
    i += length;
    ++column;
    if (c == '\n') line++, column = 1;
  }
}

}  // namespace octet::schema

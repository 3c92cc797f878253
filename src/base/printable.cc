#include "base/printable.h"

#include <algorithm>
#include <cstdint>

namespace octet {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

// Length in bytes of the character that `text` begins with; 0: no UTF-8; -1: it ends within one that is good so far.
int character_length(std::string_view text, uint32_t& code) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const int length = first >= 0xc2 && first < 0xe0   ? 2
                     : first >= 0xe0 && first < 0xf0 ? 3
                     : first >= 0xf0 && first < 0xf5 ? 4
                                                     : 0;
  if (length == 0) return 0;
  code = first & (0x7fu >> length);
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) == text.size()) return -1;
    if ((byte(static_cast<size_t>(i)) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(static_cast<size_t>(i)) & 0x3fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};  // shorter forms of the same are no UTF-8
  return code < kSmallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : length;
}

bool is_obeyed(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x61c || c == 0xfeff;
}

// `consumed`: where an unfinished last character begins, or the end of the text.
std::string printable(std::string_view text, bool one_line, size_t& consumed) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    uint32_t code = 0;
    const int length = character_length(text.substr(at), code);
    if (length < 0) break;
    if (length == 0) {
      const auto byte = static_cast<uint8_t>(text[at]);
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      ++at;
      continue;
    }
    if (!is_obeyed(code) || (!one_line && (code == '\n' || code == '\t'))) {
      out += text.substr(at, static_cast<size_t>(length));
    } else if (code == '\n' || code == '\t') {
      out += code == '\n' ? "\\n" : "\\t";
    } else {
      out +=
          {'\\', 'u', kDigits[code >> 12 & 15], kDigits[code >> 8 & 15], kDigits[code >> 4 & 15], kDigits[code & 15]};
    }
    at += static_cast<size_t>(length);
  }
  consumed = at;
  return out;
}

std::string printable(std::string_view text, bool one_line) {
  size_t consumed = 0;
  std::string out = printable(text, one_line, consumed);
  for (const char c : text.substr(consumed))  // cut off within a character
    out += {'\\', 'x', kDigits[static_cast<uint8_t>(c) >> 4], kDigits[static_cast<uint8_t>(c) & 15]};
  return out;
}

}  // namespace

std::string printable_line(std::string_view text) {
  return printable(text, true);
}

std::string printable_text(std::string_view text) {
  return printable(text, false);
}

bool PrintableBuffer::pass_on(bool all) {
  size_t consumed = held_.size();
  const std::string out = all ? printable(held_, false) : printable(held_, false, consumed);
  held_.erase(0, consumed);
  return out_.sputn(out.data(), static_cast<std::streamsize>(out.size())) == static_cast<std::streamsize>(out.size());
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  held_ += traits_type::to_char_type(c);
  return pass_on(false) ? c : traits_type::eof();
}

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize size) {
  held_.append(text, static_cast<size_t>(size));
  return pass_on(false) ? size : 0;
}

int PrintableBuffer::sync() {
  const bool done = pass_on(true);
  return out_.pubsync() == 0 && done ? 0 : -1;
}

}  // namespace octet

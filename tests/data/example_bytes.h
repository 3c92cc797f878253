// Protobuf by hand, for Examples that nobody of Octet's wrote.
#pragma once
#include <string>

#include "base/error.h"

namespace octet::data {

// A field of bytes.
inline std::string field(int number, const std::string& bytes) {
  std::string out{static_cast<char>(number << 3 | 2)};
  size_t left = bytes.size();
  for (; left >= 128; left >>= 7) out += static_cast<char>((left & 0x7f) | 0x80);
  return out + static_cast<char>(left) + bytes;
}
// An entry of the map of features, with the list `kind` (1 bytes, 2 floats, 3 integers).
inline std::string feature(const std::string& key, int kind, const std::string& list) {
  return field(1, field(1, key) + field(2, field(kind, list)));
}
inline std::string text_feature(const std::string& key, const std::string& text) {
  return feature(key, 1, field(1, text));
}
// Of an integer of 0 to 127, or a negative one, packed.
inline std::string integer_feature(const std::string& key, int value) {
  OCTET_CHECK(value < 128);
  const std::string varint = value >= 0 ? std::string(1, static_cast<char>(value))
                                        : static_cast<char>((value & 0x7f) | 0x80) + std::string(8, '\xff') + '\x01';
  return feature(key, 3, field(1, varint));
}
inline std::string example(const std::string& features) {
  return field(1, features);
}

}  // namespace octet::data

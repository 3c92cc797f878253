// Plain values as bytes and back, between processes of one program on machines of one kind; not for files.
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace octet {

class ByteWriter {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void put_all(std::span<const T> values) {
    put(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void put_text(std::string_view text) { put_all(std::span<const char>(text.data(), text.size())); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// In the order in which they were put. UserError where the bytes end too soon.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T> T get() {
    T value;
    std::memcpy(&value, piece(1, sizeof value), sizeof value);
    return value;
  }
  template <typename T>
  requires std::is_trivially_copyable_v<T> std::vector<T> get_all() {
    const auto count = get<size_t>();
    const char* from = piece(count, sizeof(T));
    std::vector<T> out(count);
    if (count > 0) std::memcpy(out.data(), from, count * sizeof(T));
    return out;
  }
  std::string get_text() {
    const auto count = get<size_t>();
    return std::string(piece(count, 1), count);
  }
  bool at_end() const { return rest_.empty(); }

 private:
  const char* piece(size_t count, size_t size) {
    if (count > rest_.size() / size) fail("a message of another process ends too soon");
    const char* from = rest_.data();
    rest_.remove_prefix(count * size);
    return from;
  }
  std::string_view rest_;
};

}  // namespace octet

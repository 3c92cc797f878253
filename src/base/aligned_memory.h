// Memory for vector code: starts at a multiple of 64 bytes, and where it is large, on huge pages if the system has them
// (a translation entry then covers 2 MiB of weights instead of 4 KiB).
#pragma once
#include <cstddef>
#include <cstdint>

namespace octet {

class AlignedMemory {
 public:
  AlignedMemory() = default;
  explicit AlignedMemory(int64_t bytes);  // not initialized; std::bad_alloc
  ~AlignedMemory();
  AlignedMemory(AlignedMemory&& other) noexcept;
  AlignedMemory& operator=(AlignedMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace octet

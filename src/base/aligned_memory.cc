#include "base/aligned_memory.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace octet {
namespace {

constexpr int64_t kHugePage = int64_t{1} << 21;

std::align_val_t alignment_of(int64_t bytes) {
  return std::align_val_t{static_cast<size_t>(bytes >= kHugePage ? kHugePage : 64)};
}

}  // namespace

AlignedMemory::AlignedMemory(int64_t bytes) : size_(bytes) {
  data_ = static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), alignment_of(bytes)));
#if defined(MADV_HUGEPAGE)
  // Whole huge pages only: the last one, partly used, would cost memory. Advice; a refusal does no harm.
  if (bytes >= kHugePage) ::madvise(data_, static_cast<size_t>(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
#endif
}

AlignedMemory::~AlignedMemory() {
  if (data_ != nullptr) ::operator delete(data_, alignment_of(size_));
}

AlignedMemory::AlignedMemory(AlignedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedMemory& AlignedMemory::operator=(AlignedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace octet

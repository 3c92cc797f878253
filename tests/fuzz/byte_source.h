// The bytes of a fuzzer as a sequence of choices; zeros when they are used up.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

namespace octet::testing {

// Integers at the borders of what formats and arithmetic can hold.
inline constexpr int64_t kBorderNumbers[] = {-1,
                                             0,
                                             1,
                                             -2,
                                             2,
                                             3,
                                             7,
                                             16,
                                             17,
                                             64,
                                             127,
                                             128,
                                             255,
                                             256,
                                             1000,
                                             4097,
                                             65536,
                                             1 << 20,
                                             std::numeric_limits<int32_t>::max(),
                                             std::numeric_limits<int32_t>::min(),
                                             1LL << 31,
                                             1LL << 32,
                                             1LL << 40,
                                             1LL << 62,
                                             std::numeric_limits<int64_t>::max(),
                                             std::numeric_limits<int64_t>::max() - 1,
                                             std::numeric_limits<int64_t>::min(),
                                             std::numeric_limits<int64_t>::min() + 1};

class ByteSource {
 public:
  explicit ByteSource(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  size_t used() const { return at_; }
  bool empty() const { return at_ >= bytes_.size(); }
  uint8_t byte() { return empty() ? 0 : bytes_[at_++]; }
  // In [first, last]; at most 256 values.
  int64_t between(int64_t first, int64_t last) { return first + byte() % (last - first + 1); }
  // True for about `percent` of the bytes; false when they are used up.
  bool chance(int percent) { return byte() >= 256 - 256 * percent / 100; }
  template <typename Range>
  const auto& pick(const Range& range) {
    return *(std::begin(range) + byte() % std::size(range));
  }
  // Nearly always `sensible`, now and then a number at a border, or one beside the sensible one.
  int64_t number(int64_t sensible) {
    const uint8_t choice = byte();
    if (choice >= 250) return pick(kBorderNumbers);
    if (choice >= 246) return sensible + static_cast<int8_t>(byte()) % 4;
    return sensible;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace octet::testing

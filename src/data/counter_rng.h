// Random numbers that are a function of (seed, stream, position) alone: no shared state, so results depend neither on
// threads nor on the order of work, and any epoch can be entered in its middle.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace octet::data {

class CounterRng {
 public:
  // Independent streams for every (seed, a, b), for example (seed, epoch, sample index).
  CounterRng(uint64_t seed, uint64_t a, uint64_t b = 0) : key_(mix(mix(mix(seed) ^ a) ^ b)) {}

  uint64_t next() { return mix(key_ + kStep * ++position_); }
  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Uniform in [0, n), n > 0.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(static_cast<unsigned __int128>(next()) * static_cast<uint64_t>(n) >> 64);
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;  // of SplitMix64, as are the constants below
  static uint64_t mix(uint64_t z) {
    z += kStep;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t key_, position_ = 0;
};

// Fisher-Yates; std::shuffle may differ between standard libraries.
template <typename T>
void shuffle(std::vector<T>& items, CounterRng& random) {
  for (auto i = static_cast<int64_t>(items.size()) - 1; i > 0; --i)
    std::swap(items[static_cast<size_t>(i)], items[static_cast<size_t>(random.below(i + 1))]);
}

}  // namespace octet::data

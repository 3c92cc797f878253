#include "quant/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/cpu_features.h"
#include "base/error.h"

namespace octet::quant {
namespace {

constexpr int kLogBins = 12;
static_assert(1 << kLogBins == Histogram::kBins);
// Below this the bins stop shrinking, so that 1 / width stays a normal float. Such magnitudes are zeros to any network.
constexpr int kMinExponent = -100;
// Values binned at a time: their bin numbers stay in the first-level cache between the two loops.
constexpr size_t kBlock = 2048;
// Values between two flushes of the 32-bit counters.
constexpr size_t kChunk = size_t{1} << 20;

constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u;

// Integers that are ordered as the floats are, and back. (It is its own inverse.)
inline int32_t ordered(int32_t bits) {
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

struct Scan {
  int32_t min = std::numeric_limits<int32_t>::max();  // ordered bits, finite values only
  int32_t max = std::numeric_limits<int32_t>::min();
  int32_t nans = 0, infinities = 0, zeros = 0;
};

// Integer arithmetic throughout: compilers vectorise it without being told to forget about NaN and signed zero.
[[gnu::always_inline]] inline Scan scan_body(const float* values, size_t n) {
  Scan s;
  for (size_t i = 0; i < n; i++) {
    const int32_t bits = std::bit_cast<int32_t>(values[i]);
    const int32_t magnitude = bits & static_cast<int32_t>(kMagnitude);
    const bool finite = magnitude < static_cast<int32_t>(kInfinity);
    // Minus zero counts as zero.
    const int32_t order = magnitude == 0 ? 0 : ordered(bits);
    const int32_t low = finite ? order : std::numeric_limits<int32_t>::max();
    const int32_t high = finite ? order : std::numeric_limits<int32_t>::min();
    s.min = low < s.min ? low : s.min;
    s.max = high > s.max ? high : s.max;
    s.nans += magnitude > static_cast<int32_t>(kInfinity);
    s.infinities += magnitude == static_cast<int32_t>(kInfinity);
    s.zeros += magnitude == 0;
  }
  return s;
}

// floor(|x| / width), the width being a power of two: exact. Not finite: bin kBins, which nobody reads; zero: bin 0.
[[gnu::always_inline]] inline void index_body(const float* values, size_t n, float reciprocal_width, int32_t* index) {
  for (size_t i = 0; i < n; i++) {
    const float scaled = std::fabs(values[i]) * reciprocal_width;
    const float bounded = scaled < static_cast<float>(Histogram::kBins) ? scaled : static_cast<float>(Histogram::kBins);
    index[i] = static_cast<int32_t>(bounded);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2"), gnu::optimize("O3")]] Scan scan_avx2(const float* v, size_t n) {
  return scan_body(v, n);
}
[[gnu::target("avx2"), gnu::optimize("O3")]] void index_avx2(const float* v, size_t n, float r, int32_t* index) {
  index_body(v, n, r, index);
}
#endif

Scan scan(const float* v, size_t n) {
#if defined(__x86_64__)
  if (cpu_features().avx2) return scan_avx2(v, n);
#endif
  return scan_body(v, n);
}

void bin_indices(const float* v, size_t n, float r, int32_t* index) {
#if defined(__x86_64__)
  if (cpu_features().avx2) return index_avx2(v, n, r, index);
#endif
  index_body(v, n, r, index);
}

float from_ordered(int32_t order) {
  return std::bit_cast<float>(ordered(order));
}

// The smallest e >= kMinExponent with amax < 2^e.
int range_exponent(float amax) {
  int e = 0;
  std::frexp(amax, &e);
  return std::max(e, kMinExponent);
}

}  // namespace

float Histogram::amax() const {
  return std::max(std::fabs(min()), std::fabs(max()));
}

double Histogram::bin_width() const {
  return bins_.empty() ? 0.0 : std::ldexp(1.0, exponent_ - kLogBins);
}

int Histogram::used_bins() const {
  int used = static_cast<int>(bins_.size());
  while (used > 0 && bins_[static_cast<size_t>(used) - 1] == 0) used--;
  return used;
}

void Histogram::grow_to(int exponent) {
  if (bins_.empty()) {
    bins_.assign(kBins, 0);
    exponent_ = exponent;
    return;
  }
  if (exponent <= exponent_) return;
  const int shift = exponent - exponent_;
  for (size_t k = 1; k < kBins; k++) {
    const int64_t moved = bins_[k];
    bins_[k] = 0;
    bins_[shift >= kLogBins ? 0 : k >> shift] += moved;
  }
  exponent_ = exponent;
}

void Histogram::observe(std::span<const float> values) {
  for (; !values.empty(); values = values.subspan(std::min(kChunk, values.size())))
    observe_chunk(values.first(std::min(kChunk, values.size())));
}

void Histogram::observe_chunk(std::span<const float> values) {
  const Scan s = scan(values.data(), values.size());
  nans_ += s.nans;
  infinities_ += s.infinities;
  const int64_t nonzeros = static_cast<int64_t>(values.size()) - s.nans - s.infinities - s.zeros;
  if (nonzeros + s.zeros > 0) {
    const float low = from_ordered(s.min), high = from_ordered(s.max);
    min_ = count() ? std::min(min_, low) : low;
    max_ = count() ? std::max(max_, high) : high;
  }
  zeros_ += s.zeros;
  nonzeros_ += nonzeros;
  if (nonzeros == 0) return;
  grow_to(range_exponent(amax()));

  // Two sets of counters: equal values in a row (the zeros that a ReLU makes) would otherwise wait for each other.
  static thread_local std::array<uint32_t, 2 * (kBins + 1)> counters;
  counters.fill(0);
  uint32_t* even = counters.data();
  uint32_t* odd = counters.data() + kBins + 1;
  const float reciprocal_width = std::ldexp(1.0f, kLogBins - exponent_);
  int32_t index[kBlock];
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t n = std::min(kBlock, values.size() - begin);
    bin_indices(values.data() + begin, n, reciprocal_width, index);
    size_t i = 0;
    for (; i + 2 <= n; i += 2) {
      even[index[i]]++;
      odd[index[i + 1]]++;
    }
    if (i < n) even[index[i]]++;
  }
  for (size_t k = 0; k < kBins; k++) bins_[k] += even[k] + odd[k];
  bins_[0] -= s.zeros;
}

void Histogram::merge(const Histogram& other) {
  if (other.count() > 0) {
    min_ = count() ? std::min(min_, other.min_) : other.min_;
    max_ = count() ? std::max(max_, other.max_) : other.max_;
  }
  zeros_ += other.zeros_;
  nonzeros_ += other.nonzeros_;
  nans_ += other.nans_;
  infinities_ += other.infinities_;
  if (other.bins_.empty()) return;
  grow_to(other.exponent_);
  const int shift = exponent_ - other.exponent_;
  for (size_t k = 0; k < kBins; k++) bins_[shift >= kLogBins ? 0 : k >> shift] += other.bins_[k];
}

}  // namespace octet::quant

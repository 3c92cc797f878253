#include "quant/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/byte_stream.h"
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

constexpr int32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;

// Integers that are ordered as the floats are, and back. (It is its own inverse.)
constexpr int32_t ordered(int32_t bits) {
  return bits ^ ((bits >> 31) & kMagnitude);
}

// Eight values at a time, in the compilers' own vectors: selections among floats keep plain loops from being
// vectorized.
constexpr size_t kLanes = 8;
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef float Floats __attribute__((vector_size(4 * kLanes)));

struct Scan {
  int32_t min = std::numeric_limits<int32_t>::max();  // ordered bits, finite values only
  int32_t max = std::numeric_limits<int32_t>::min();
  int64_t nans = 0, infinities = 0, zeros = 0;
};

[[gnu::always_inline]] inline Scan scan_body(const float* values, size_t n) {
  const Ints lowest = Ints{} + std::numeric_limits<int32_t>::min(),
             highest = Ints{} + std::numeric_limits<int32_t>::max();
  Ints low = highest, high = lowest, nans = {}, infinities = {}, zeros = {};
  const auto visit = [&](const Ints& bits) __attribute__((always_inline)) {
    const Ints magnitude = bits & kMagnitude;
    const Ints finite = magnitude < kInfinity, zero = magnitude == 0;
    const Ints order = (bits ^ ((bits >> 31) & kMagnitude)) & ~zero;  // minus zero counts as zero
    const Ints least = finite ? order : highest, greatest = finite ? order : lowest;
    low = least < low ? least : low;
    high = greatest > high ? greatest : high;
    nans -= magnitude > kInfinity;  // true is -1
    infinities -= magnitude == kInfinity;
    zeros -= zero;
  };
  size_t i = 0;
  for (Ints bits; i + kLanes <= n; i += kLanes) {
    std::memcpy(&bits, values + i, sizeof bits);
    visit(bits);
  }
  // The rest is filled up with copies of its first value, which would be counted too often.
  Scan s;
  if (const size_t rest = n - i; rest > 0) {
    const int32_t first = std::bit_cast<int32_t>(values[i]);
    Ints bits = Ints{} + first;
    std::memcpy(&bits, values + i, rest * sizeof(float));
    visit(bits);
    const int64_t extra = static_cast<int64_t>(kLanes - rest);
    const int32_t magnitude = first & kMagnitude;
    s.nans -= magnitude > kInfinity ? extra : 0;
    s.infinities -= magnitude == kInfinity ? extra : 0;
    s.zeros -= magnitude == 0 ? extra : 0;
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    s.min = std::min(s.min, low[lane]);
    s.max = std::max(s.max, high[lane]);
    s.nans += nans[lane];
    s.infinities += infinities[lane];
    s.zeros += zeros[lane];
  }
  return s;
}

// floor(|x| / width), the width being a power of two: exact. Zeros (half of what a ReLU makes) and what is not finite
// have been counted already: they go to kLanes bins behind the last, which nobody reads, one for each lane, because
// increments of the same counter would wait for each other. `n` is rounded up to whole vectors; both arrays have room
// for that.
[[gnu::always_inline]] inline void index_body(const float* values, size_t n, float reciprocal_width, int32_t* index) {
  const Ints sinks = Ints{0, 1, 2, 3, 4, 5, 6, 7} + Histogram::kBins;
  for (size_t i = 0; i < n; i += kLanes) {
    Ints bits;
    std::memcpy(&bits, values + i, sizeof bits);
    const Ints magnitude = bits & kMagnitude;
    const Ints counted = magnitude < kInfinity ? magnitude : Ints{};
    Floats scaled;
    std::memcpy(&scaled, &counted, sizeof scaled);
    scaled *= reciprocal_width;
    const Ints bin = counted == 0 ? sinks : __builtin_convertvector(scaled, Ints);
    std::memcpy(index + i, &bin, sizeof bin);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] Scan scan_avx2(const float* v, size_t n) {
  return scan_body(v, n);
}
[[gnu::target("avx2")]] void index_avx2(const float* v, size_t n, float r, int32_t* index) {
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
  while (used > 0 && bins_[static_cast<size_t>(used) - 1] == 0) --used;
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
  for (size_t k = 1; k < kBins; ++k) {
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

  // Two sets of counters, because neighbors are often equal.
  static thread_local std::array<uint32_t, 2 * (kBins + kLanes)> counters;
  counters.fill(0);
  uint32_t* even = counters.data();
  uint32_t* odd = counters.data() + kBins + kLanes;
  const float reciprocal_width = std::ldexp(1.0f, kLogBins - exponent_);
  int32_t index[kBlock];
  float last[kLanes] = {};
  for (size_t begin = 0; begin < values.size();) {
    const float* from = values.data() + begin;
    size_t n = std::min(kBlock, values.size() - begin);
    if (n < kLanes) {  // vectors must not read beyond the end
      std::copy(from, from + n, last);
      from = last;
    } else {
      n -= n % kLanes;
    }
    bin_indices(from, n, reciprocal_width, index);
    size_t i = 0;
    for (; i + 2 <= n; i += 2) {
      even[index[i]]++;
      odd[index[i + 1]]++;
    }
    if (i < n) even[index[i]]++;
    begin += n;
  }
  for (size_t k = 0; k < kBins; ++k) bins_[k] += even[k] + odd[k];
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
  for (size_t k = 0; k < kBins; ++k) bins_[shift >= kLogBins ? 0 : k >> shift] += other.bins_[k];
}

std::string Histogram::bytes() const {
  ByteWriter out;
  out.put_all(std::span<const int64_t>(bins_));
  out.put(exponent_);
  for (const int64_t count : {zeros_, nonzeros_, nans_, infinities_}) out.put(count);
  out.put(min_);
  out.put(max_);
  return out.take();
}

Histogram Histogram::of_bytes(std::string_view bytes) {
  ByteReader in(bytes);
  Histogram out;
  out.bins_ = in.get_all<int64_t>();
  require(out.bins_.empty() || out.bins_.size() == kBins, "a histogram of another process has ", out.bins_.size(),
          " bins, expected ", kBins);
  out.exponent_ = in.get<int>();
  for (int64_t* count : {&out.zeros_, &out.nonzeros_, &out.nans_, &out.infinities_}) *count = in.get<int64_t>();
  out.min_ = in.get<float>();
  out.max_ = in.get<float>();
  return out;
}

std::vector<int64_t> magnitudes(const Histogram& histogram, int parts) {
  std::vector<int64_t> out(static_cast<size_t>(parts), 0);
  const std::span<const int64_t> bins = histogram.bins();
  const double amax = histogram.amax(), width = histogram.bin_width();
  if (amax <= 0) return out;
  for (int i = 0; i < histogram.used_bins(); ++i) {
    const double part = (i + 0.5) * width / amax * parts;
    out[static_cast<size_t>(std::clamp(part, 0.0, parts - 1.0))] += bins[static_cast<size_t>(i)];
  }
  return out;
}

}  // namespace octet::quant

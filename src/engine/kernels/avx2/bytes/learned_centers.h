// What a thread keeps from run to run about the input of a 1x1 layer (ConvArgs::kept): the centers of its channels, and
// what the sums of all pixels start with at these centers. Images of a kind have much the same centers, so both are
// made anew only when codes turn out to lie further from them than they used to. Results do not depend on them.
#pragma once
#include "engine/kernels/avx2/bytes/centered_codes.h"

namespace octet::kernels {
namespace {

// Adds sum c w to what all pixels of a block start with: `sums` has 128 times the sum of the weights, and `offset` is
// -128 times the sum of the centers less 128.
inline void start_at_centers(const int8_t* eighths, const int8_t* panel, const int32_t* sums, int64_t even_dwords,
                             int32_t offset, int32_t* starts) {
  const Y ones = _mm256_set1_epi16(1);
  Y sum[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int64_t d = 0; d < even_dwords; d += 2, eighths += 8, panel += 128)
    for (int half = 0; half < 2; ++half) {
      const auto product = [&](int i) __attribute__((always_inline)) {
        int32_t four;
        std::memcpy(&four, eighths + i * 4, 4);
        return _mm256_maddubs_epi16(load32(panel + i * 64 + half * 32), _mm256_set1_epi32(four));
      };
      sum[half] = add_pairs(sum[half], _mm256_add_epi16(product(0), product(1)), ones);
    }
  for (int half = 0; half < 2; ++half) {
    // 8 n (w + 128) - 8 n * 128
    const Y at_centers = _mm256_add_epi32(_mm256_slli_epi32(sum[half], 3), _mm256_set1_epi32(offset));
    const Y start = _mm256_add_epi32(load32(starts + half * 8), load32(sums + half * 8));
    store32(starts + half * 8, _mm256_add_epi32(start, at_centers));
  }
}

// -128 times the sum of the centers less 128.
inline int32_t centers_offset(const int8_t* eighths, int64_t dwords) {
  int32_t sum = 0;
  for (int64_t i = 0; i < dwords * 4; ++i) sum += eighths[i];
  return -1024 * sum;
}

class LearnedCenters {
 public:
  // Bytes of `kept` for this many dwords of a pixel and blocks of output channels.
  static int64_t bytes(int64_t dwords, int64_t blocks) {
    return kHeaderBytes + 2 * centers_bytes(dwords) + blocks * 64;
  }

  LearnedCenters(std::byte* kept, int64_t dwords)
      : header_(*reinterpret_cast<Header*>(kept)),
        dwords_(dwords),
        centers_{reinterpret_cast<int8_t*>(kept + kHeaderBytes),
                 reinterpret_cast<int8_t*>(kept + kHeaderBytes + centers_bytes(dwords))},
        starts_(reinterpret_cast<int32_t*>(kept + kHeaderBytes + 2 * centers_bytes(dwords))) {}

  bool known() const { return header_.known; }
  bool fresh() const { return fresh_; }  // learned in this run
  const int8_t* codes() const { return centers_.codes; }
  // What the 16 sums of all pixels start with, for a block of prepare().
  const int32_t* starts(int64_t block) const { return starts_ + block * 16; }

  // As find_centers().
  template <typename Pixel>
  void learn(const Pixel& pixel) {
    find_centers(pixel, dwords_, centers_);
    header_ = {.known = true, .offset = centers_offset(centers_.eighths, dwords_)};
    fresh_ = true;
  }
  // Makes starts() of these blocks, if they are not there from another run. `panels` and `weight_sums`: as prepared for
  // the layer, with `even_dwords` a block.
  void prepare(const ConvArgs& a, Range blocks, bool relu, const int8_t* panels, const int32_t* weight_sums,
               int64_t even_dwords) {
    if (blocks.begin >= header_.blocks.begin && blocks.end <= header_.blocks.end) return;
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      start_sums(a, b, relu, starts_ + b * 16);
      start_at_centers(centers_.eighths, panels + b * even_dwords * 64, weight_sums + b * 16, even_dwords,
                       header_.offset, starts_ + b * 16);
    }
    header_.blocks = blocks;
  }
  void forget() { header_.known = false; }
  // After a run in which so many of these dwords of codes needed repairs.
  void judge(int64_t repairs, int64_t dwords) {
    const auto rate = static_cast<int32_t>(repairs * kRateOne / (dwords + 1));
    if (fresh_) {
      header_.usual_rate = rate;
    } else if (rate > 2 * header_.usual_rate + kRateOne / 256) {
      forget();
    }
  }

 private:
  static constexpr int64_t kHeaderBytes = 64;
  static constexpr int64_t kRateOne = 1 << 20;
  struct Header {  // all zero before the first run
    bool known = false;
    int32_t offset = 0;
    int32_t usual_rate = 0;  // of repairs, when the centers were learned
    Range blocks{0, 0};      // whose starts are made
  };
  static_assert(sizeof(Header) <= kHeaderBytes);
  static int64_t centers_bytes(int64_t dwords) { return (dwords * 4 + 64 + 63) / 64 * 64; }

  Header& header_;
  const int64_t dwords_;
  const Centers centers_;
  int32_t* const starts_;
  bool fresh_ = false;
};

}  // namespace
}  // namespace octet::kernels

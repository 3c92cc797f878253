// vpmaddubsw adds two products u8 x s8 with 16-bit saturation, but while the codes are small enough no weights reach
// it. So the tiles multiply bytes, and get copies of the input in which large codes are made smaller; what these copies
// lack, the *repairs*, is added to the sums that a pixel starts with.
#pragma once
#include "engine/kernels/avx2/conv_tiles.h"

namespace octet::kernels {
namespace {

// Sum of the products of bytes; `ones` make dwords of pairs.
OCTET_INLINE Y add_pairs(Y sum, Y pairs, Y ones) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
}
// Unsigned codes x weights: pairs of codes up to 256, as 256 * 127 and 256 * -128 are 16-bit integers.
struct ByteDot {
  static OCTET_INLINE Y add(Y sum, Y input, Y weights, Y ones) {
    return add_pairs(sum, _mm256_maddubs_epi16(input, weights), ones);
  }
};
constexpr int64_t kByteTilePixels = 5;  // 10 sums, two vectors of weights, ones, one of input, two products

constexpr int64_t kRepairShare = 16;  // at most one of so many dwords is repaired: more take more time than bytes save

// What the copy of four codes lacks, as bytes that vpmaddubsw can multiply like the codes: a pair saturates no sum.
struct Repair {
  int32_t start = 0;  // of the pixel's own sums, in entries
  int32_t panel = 0;  // bytes from the first weights of a block
  int32_t codes = 0;
};

// Adds what the copies lack to the sums that their pixels start with. kCentered: signed codes and, in the panel, the
// weights plus 128; else unsigned codes and signed weights.
template <bool kCentered>
void add_repairs(const Repair* repair, const Repair* end, const int8_t* panel, int32_t* starts) {
  const Y ones = _mm256_set1_epi16(1);
  while (repair < end) {
    int32_t* const sums = starts + repair->start;
    Y sum[2] = {load32(sums), load32(sums + 8)};
    do {  // those of a pixel mostly follow each other
      const Y codes = _mm256_set1_epi32(repair->codes);
      for (int half = 0; half < 2; ++half) {
        const Y weights = load32(panel + repair->panel + half * 32);
        sum[half] = add_pairs(
            sum[half], kCentered ? _mm256_maddubs_epi16(weights, codes) : _mm256_maddubs_epi16(codes, weights), ones);
      }
    } while (++repair < end && starts + repair->start == sums);
    store32(sums, sum[0]);
    store32(sums + 8, sum[1]);
  }
}

}  // namespace
}  // namespace octet::kernels

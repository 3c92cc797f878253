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

// What the copy of four codes lacks.
struct Repair {
  int32_t start = 0;      // of the pixel's own sums, in entries
  int32_t panel = 0;      // bytes from the first weights of a block
  int32_t words = 0;      // the two differences at the even places
  int32_t odd_words = 0;  // and at the odd ones
};

// Adds what the copies lack to the sums that their pixels start with. kUnsigned: the panel has the weights plus 128.
template <bool kUnsigned = false>
void add_differences(const Repair* repairs, const Repair* end, const int8_t* panel, int32_t* starts) {
  for (const Repair* r = repairs; r < end; ++r) {
    const Y words = _mm256_set1_epi32(r->words), odd_words = _mm256_set1_epi32(r->odd_words);
    int32_t* sums = starts + r->start;
    for (int half = 0; half < 2; ++half) {
      Y w = load32(panel + r->panel + half * 32);
      if constexpr (kUnsigned) w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
      const Y even = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
      const Y products =
          _mm256_add_epi32(_mm256_madd_epi16(words, even), _mm256_madd_epi16(odd_words, _mm256_srai_epi16(w, 8)));
      store32(sums + half * 8, _mm256_add_epi32(load32(sums + half * 8), products));
    }
  }
}

}  // namespace
}  // namespace octet::kernels

// A layer over one pixel (PixelConvFunction): both operands are widened to words on the way, so sums are exact.
#include <optional>

#include "engine/kernels/avx2/function.h"
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

// Sums of 16 channels from `block` on, in order.
OCTET_INLINE void multiply(const ConvArgs& a, int64_t block, int64_t dwords, Y* low, Y* high) {
  const int8_t* w = a.weights + block * dwords * 64;
  // Four channels each, with one sum for the even and one for the odd pair of bytes.
  Y sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  for (int64_t d = 0; d < dwords; ++d, w += 64) {
    int32_t dword;
    std::memcpy(&dword, a.in.data + d * 4, 4);
    const Y x = _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(_mm_set1_epi32(dword)));
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(x, _mm256_cvtepi8_epi16(load16(w + i * 16))));
  }
  *low = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[0], sum[1]), 0xd8);
  *high = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[2], sum[3]), 0xd8);
  *low = _mm256_add_epi32(*low, load32(a.acc_init + block * 16));
  *high = _mm256_add_epi32(*high, load32(a.acc_init + block * 16 + 8));
}

}  // namespace

void pixel_conv_avx2(const ConvArgs& a) {
  const Epilogue& e = a.epilogue;
  const int64_t dwords = pixel_bytes(a.geometry) / 4, blocks = (a.geometry.out_channels + 15) / 16;
  const Limits limits(e.lo, e.hi, e.out.zero_point);
  std::optional<Function> function;
  if (e.function) function.emplace(e.function);
  for (int64_t block = 0; block < blocks; ++block) {
    Y low, high;
    multiply(a, block, dwords, &low, &high);
    const float* m = e.multiplier + block * 16;
    const auto rounded = [&](Y sum, const float* multiplier) __attribute__((always_inline)) {
      __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(multiplier));
      if (e.function.has_tails()) v = Function::draw_in(v, e.function);
      return limits.round(v);
    };
    const Y v0 = rounded(low, m), v1 = rounded(high, m + 8);
    __m128i codes;
    if (function) {
      const Y words = _mm256_packs_epi32(v0, v1), both = (*function)(words, words);
      codes = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    } else {
      codes = limits.pack(v0, v1);
    }
    store_codes(e.out.data + block * 16, codes, e.out.c_pitch < 16);
  }
  if (e.table)
    for (int64_t c = 0; c < e.out.c_pitch; ++c) e.out.data[c] = e.table[e.out.data[c]];
}

}  // namespace octet::kernels

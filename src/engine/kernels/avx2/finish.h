// The Epilogue of int8_conv.h for 16 channels of some pixels in a row, with 256-bit vectors.
#pragma once
#include "engine/kernels/avx2/vector.h"
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {
namespace {

// acc: [pixel][16]. The pixels start at (n, y, x) and follow each other in the row (or in dense rows).
inline void finish16(const int32_t* acc, int64_t pixels, int64_t channel, int64_t n, int64_t y, int64_t x,
                     const Epilogue& e) {
  const __m256 m0 = _mm256_loadu_ps(e.multiplier + channel), m1 = _mm256_loadu_ps(e.multiplier + channel + 8);
  const auto scaled = [&](int64_t i, __m256 m) __attribute__((always_inline)) {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(load32(acc + i)), m);
  };
  if (e.out.data == nullptr) {
    const __m256 low = _mm256_set1_ps(e.float_lo), high = _mm256_set1_ps(e.float_hi);
    const Y mask0 = first_floats(e.out.c - channel), mask1 = first_floats(e.out.c - channel - 8);
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t at = ((n * e.out.h + y) * e.out.w + x + p) * e.out.c + channel;
      __m256 v0 = scaled(p * 16, m0), v1 = scaled(p * 16 + 8, m1);
      if (e.float_residual) {
        v0 = _mm256_add_ps(v0, _mm256_maskload_ps(e.float_residual + at, mask0));
        v1 = _mm256_add_ps(v1, _mm256_maskload_ps(e.float_residual + at + 8, mask1));
      }
      _mm256_maskstore_ps(e.float_out + at, mask0, _mm256_min_ps(_mm256_max_ps(v0, low), high));
      _mm256_maskstore_ps(e.float_out + at + 8, mask1, _mm256_min_ps(_mm256_max_ps(v1, low), high));
    }
    return;
  }
  const Limits limits(e.lo, e.hi, e.out.zero_point);
  const __m256 mid_low = _mm256_set1_ps(static_cast<float>(e.mid_lo - e.mid_zero_point));
  const __m256 mid_high = _mm256_set1_ps(static_cast<float>(e.mid_hi - e.mid_zero_point));
  const __m256 mid_multiplier = _mm256_set1_ps(e.mid_multiplier);
  const __m256 residual_multiplier = _mm256_set1_ps(e.residual_multiplier);
  const Y residual_zero = _mm256_set1_epi32(e.residual.zero_point);
  const uint8_t* residual = e.residual.data ? e.residual.data + n * e.residual.image_stride +
                                                  y * e.residual.row_stride + x * e.residual.c_pitch + channel
                                            : nullptr;
  uint8_t* out = e.out.data + n * e.out.image_stride + y * e.out.row_stride + x * e.out.c_pitch + channel;
  const auto value = [&](int64_t i, __m256 m, const uint8_t* r) __attribute__((always_inline)) {
    __m256 v = scaled(i, m);
    if (residual) {
      if (e.rounds_twice) {
        v = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        v = _mm256_mul_ps(_mm256_min_ps(_mm256_max_ps(v, mid_low), mid_high), mid_multiplier);
      }
      const Y codes = _mm256_sub_epi32(_mm256_cvtepu8_epi32(load8(r)), residual_zero);
      v = _mm256_add_ps(v, _mm256_mul_ps(_mm256_cvtepi32_ps(codes), residual_multiplier));
    }
    return limits.round(v);
  };
  for (int64_t p = 0; p < pixels; ++p) {
    const uint8_t* r = residual ? residual + p * e.residual.c_pitch : nullptr;
    uint8_t* to = out + p * e.out.c_pitch;
    store_codes(to, limits.pack(value(p * 16, m0, r), value(p * 16 + 8, m1, r ? r + 8 : r)), e.out.c_pitch < 16);
    if (e.table)
      for (int64_t i = 0; i < smaller(16, e.out.c_pitch); ++i) to[i] = e.table[to[i]];
  }
}

}  // namespace
}  // namespace octet::kernels

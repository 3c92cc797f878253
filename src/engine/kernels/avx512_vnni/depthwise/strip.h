// Strips of output pixels, along which the depthwise kernels walk.
#pragma once
#include "engine/kernels/avx512_vnni/depthwise/block.h"

namespace octet::kernels {
namespace {

// One strip: `length` neighboring output pixels of one row (or two), in every part of the vector.
struct Strip {
  const uint8_t* in = nullptr;  // first tap of the first pixel
  int64_t in_row = 0, in_pixel = 0;
  uint8_t* out = nullptr;
  int64_t out_row = 0, out_pixel = 0;
  int64_t length = 0;
};

template <int Parts>
OCTET_INLINE Z load_parts(const uint8_t* p, const Block& b) {
  if constexpr (Parts == 1) {
    return _mm512_loadu_si512(p);
  } else if constexpr (Parts == 2) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + b.in_part[1])), 1);
  } else {
    Z v = _mm512_inserti32x4(_mm512_castsi128_si512(load16(p)), load16(p + b.in_part[1]), 1);
    v = _mm512_inserti32x4(v, load16(p + b.in_part[2]), 2);
    return _mm512_inserti32x4(v, load16(p + b.in_part[3]), 3);
  }
}

template <int Parts>
OCTET_INLINE void store_parts(uint8_t* p, Z v, const Block& b) {
  if constexpr (Parts == 1) {
    if (b.mask == ~0ull) return _mm512_storeu_si512(p, v);
    _mm512_mask_storeu_epi8(p, b.mask, v);
  } else if constexpr (Parts == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + b.out_part[1]), _mm512_extracti64x4_epi64(v, 1));
  } else {
    store16(p, _mm512_castsi512_si128(v));
    store16(p + b.out_part[1], _mm512_extracti32x4_epi32(v, 1));
    store16(p + b.out_part[2], _mm512_extracti32x4_epi32(v, 2));
    store16(p + b.out_part[3], _mm512_extracti32x4_epi32(v, 3));
  }
}

}  // namespace
}  // namespace octet::kernels

// Small things that the AVX2 files share. Everything here is in an anonymous namespace: see kernels/CMakeLists.txt.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#define OCTET_INLINE __attribute__((always_inline)) inline

namespace octet::kernels {
namespace {

typedef __m256i Y;

OCTET_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

OCTET_INLINE __m128i load16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
OCTET_INLINE __m128i load8(const void* p) {
  return _mm_loadl_epi64(static_cast<const __m128i*>(p));
}
OCTET_INLINE void store16(void* p, __m128i v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), v);
}
OCTET_INLINE Y load32(const void* p) {
  return _mm256_loadu_si256(static_cast<const Y*>(p));
}
OCTET_INLINE void store32(void* p, Y v) {
  _mm256_storeu_si256(static_cast<Y*>(p), v);
}

// Mask of the first n of 8 floats.
OCTET_INLINE Y first_floats(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Writes 16 codes, or 4 where a pixel has no more.
OCTET_INLINE void store_codes(uint8_t* p, __m128i codes, bool four) {
  if (four) {
    _mm_storeu_si32(p, codes);
  } else {
    store16(p, codes);
  }
}

// 16 rounded values in two vectors -> 16 codes: zero point, limits.
struct Limits {
  __m256 high;
  Y zero_point16;
  __m128i low8, high8;
  Limits(int32_t lo, int32_t hi, int32_t zero_point)
      : high(_mm256_set1_ps(static_cast<float>(hi - zero_point))),
        zero_point16(_mm256_set1_epi16(static_cast<int16_t>(zero_point))),
        low8(_mm_set1_epi8(static_cast<char>(lo))),
        high8(_mm_set1_epi8(static_cast<char>(hi))) {}
  // The upper limit comes before the conversion, because too large a float has no int32; too small a one becomes
  // INT32_MIN and saturates correctly in the packs.
  OCTET_INLINE Y round(__m256 v) const { return _mm256_cvtps_epi32(_mm256_min_ps(v, high)); }
  OCTET_INLINE __m128i pack(Y a, Y b) const {
    const Y words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    const Y shifted = _mm256_adds_epi16(words, zero_point16);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(shifted), _mm256_extracti128_si256(shifted, 1));
    return _mm_min_epu8(_mm_max_epu8(bytes, low8), high8);
  }
  // 32 values in four vectors -> 32 codes.
  OCTET_INLINE Y pack(Y a, Y b, Y c, Y d) const {
    // The packs work within 128-bit lanes, so dwords of codes come out as 0 2 4 6 | 1 3 5 7.
    const Y codes = _mm256_packus_epi16(words(a, b), words(c, d));
    return clamp(_mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  }
  // The same where a and b (c and d) hold channels 0-3 8-11 and 4-7 12-15 of a pixel, as in-lane unpacks leave them.
  OCTET_INLINE Y pack_lanes(Y a, Y b, Y c, Y d) const {
    return clamp(_mm256_permute4x64_epi64(_mm256_packus_epi16(words(a, b), words(c, d)), 0xd8));
  }
  // And in two steps: words(a, c) and words(b, d) -> 32 codes.
  OCTET_INLINE Y words(Y a, Y b) const { return _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero_point16); }
  static OCTET_INLINE Y pack_words_only(Y ac, Y bd) {
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(ac, bd), words_order());
  }
  static OCTET_INLINE Y words_order() { return _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7); }
  // Their upper limit alone.
  OCTET_INLINE Y below(Y codes) const { return _mm256_min_epu8(codes, _mm256_broadcastsi128_si256(high8)); }
  OCTET_INLINE Y clamp(Y codes) const {
    return _mm256_min_epu8(_mm256_max_epu8(codes, _mm256_broadcastsi128_si256(low8)),
                           _mm256_broadcastsi128_si256(high8));
  }
};

}  // namespace
}  // namespace octet::kernels

// Small things that the AVX-512 files share. Everything here is in an anonymous namespace: see kernels/CMakeLists.txt.
#pragma once
#include <immintrin.h>

#include <cstdint>

#define OCTET_INLINE __attribute__((always_inline)) inline

namespace octet::kernels {
namespace {

typedef __m512i Z;

OCTET_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
OCTET_INLINE int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

OCTET_INLINE __m128i load16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
OCTET_INLINE void store16(void* p, __m128i v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), v);
}

// Lane order of vpackssdw + vpackuswb over four vectors of 16 dwords, undone.
OCTET_INLINE Z pack_order() {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

}  // namespace
}  // namespace octet::kernels

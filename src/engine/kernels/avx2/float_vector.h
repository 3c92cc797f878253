// Eight floats, for float_tiles.h and float_functions.h.
#pragma once
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

struct F8 {
  typedef __m256 V;
  static constexpr int64_t kLanes = 8;
  static OCTET_INLINE V zero() { return _mm256_setzero_ps(); }
  static OCTET_INLINE V broadcast(float x) { return _mm256_set1_ps(x); }
  static OCTET_INLINE V load(const float* p) { return _mm256_loadu_ps(p); }
  static OCTET_INLINE void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static OCTET_INLINE V load_first(const float* p, int64_t n) {
    return n >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_floats(n));
  }
  static OCTET_INLINE void store_first(float* p, V v, int64_t n) {
    if (n >= 8) return _mm256_storeu_ps(p, v);
    _mm256_maskstore_ps(p, first_floats(n), v);
  }
  static OCTET_INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static OCTET_INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
  static OCTET_INLINE V min(V a, V b) { return _mm256_min_ps(a, b); }
  static OCTET_INLINE V max(V a, V b) { return _mm256_max_ps(a, b); }
  static OCTET_INLINE V select_ge(V x, V bound, V a, V b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, bound, _CMP_GE_OQ));
  }
  static OCTET_INLINE V with_sign(V v, V sign) {
    const V bit = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(bit, v), _mm256_and_ps(bit, sign));
  }
  static OCTET_INLINE V exponent(V t) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t), 23)); }
};

}  // namespace
}  // namespace octet::kernels

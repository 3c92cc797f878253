// Sixteen floats, for float_tiles.h and float_functions.h.
#pragma once
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

struct F16 {
  typedef __m512 V;
  static constexpr int64_t kLanes = 16;
  static OCTET_INLINE __mmask16 first(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1); }
  static OCTET_INLINE V zero() { return _mm512_setzero_ps(); }
  static OCTET_INLINE V broadcast(float x) { return _mm512_set1_ps(x); }
  static OCTET_INLINE V load(const float* p) { return _mm512_loadu_ps(p); }
  static OCTET_INLINE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static OCTET_INLINE V load_first(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static OCTET_INLINE void store_first(float* p, V v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static OCTET_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static OCTET_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
  static OCTET_INLINE V min(V a, V b) { return _mm512_min_ps(a, b); }
  static OCTET_INLINE V max(V a, V b) { return _mm512_max_ps(a, b); }
  static OCTET_INLINE V select_ge(V x, V bound, V a, V b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, bound, _CMP_GE_OQ), b, a);
  }
  static OCTET_INLINE V with_sign(V v, V sign) {
    const V bit = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(bit, v), _mm512_and_ps(bit, sign));
  }
  static OCTET_INLINE V exponent(V t) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(t), 23)); }
};

}  // namespace
}  // namespace octet::kernels

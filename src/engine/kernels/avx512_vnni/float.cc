// The float kernels with 512-bit vectors and FMA.
#include "engine/kernels/avx2/float_tiles.h"
#include "engine/kernels/avx512_vnni/functions.h"
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
  static OCTET_INLINE V load_first(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static OCTET_INLINE void store_first(float* p, V v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static OCTET_INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static OCTET_INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
  static OCTET_INLINE V min(V a, V b) { return _mm512_min_ps(a, b); }
  static OCTET_INLINE V max(V a, V b) { return _mm512_max_ps(a, b); }
};

}  // namespace

void float_conv_avx512(const FloatConvArgs& a, Range rows, Range blocks) {
  float_conv<F16>(a, rows, blocks);
}
void float_depthwise_avx512(const FloatConvArgs& a, Range rows) {
  float_depthwise<F16>(a, rows);
}
void float_gemm_avx512(const FloatGemmArgs& a, Range rows, Range blocks) {
  float_gemm<F16>(a, rows, blocks);
}
void float_matmul_avx512(const FloatMatMulArgs& a, Range rows) {
  float_matmul<F16>(a, rows);
}

}  // namespace octet::kernels

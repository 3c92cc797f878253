// The float kernels with 256-bit vectors and FMA.
#include "engine/kernels/avx2/float_tiles.h"
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

struct F8 {
  typedef __m256 V;
  static constexpr int64_t kLanes = 8;
  static OCTET_INLINE V zero() { return _mm256_setzero_ps(); }
  static OCTET_INLINE V broadcast(float x) { return _mm256_set1_ps(x); }
  static OCTET_INLINE V load(const float* p) { return _mm256_loadu_ps(p); }
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
};

}  // namespace

void float_conv_avx2(const FloatConvArgs& a, Range rows, Range blocks) {
  float_conv<F8>(a, rows, blocks);
}
void float_depthwise_avx2(const FloatConvArgs& a, Range rows) {
  float_depthwise<F8>(a, rows);
}
void float_gemm_avx2(const FloatGemmArgs& a, Range rows, Range blocks) {
  float_gemm<F8>(a, rows, blocks);
}
void float_matmul_avx2(const FloatMatMulArgs& a, Range rows) {
  float_matmul<F8>(a, rows);
}

}  // namespace octet::kernels

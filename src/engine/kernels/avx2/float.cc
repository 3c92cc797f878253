// The float kernels with 256-bit vectors and FMA.
#include "engine/kernels/avx2/float_tiles.h"
#include "engine/kernels/avx2/float_vector.h"
#include "engine/kernels/avx2/functions.h"

namespace octet::kernels {

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

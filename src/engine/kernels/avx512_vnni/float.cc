// The float kernels with 512-bit vectors and FMA.
#include "engine/kernels/avx2/float_tiles.h"
#include "engine/kernels/avx512_vnni/float_vector.h"
#include "engine/kernels/avx512_vnni/functions.h"

namespace octet::kernels {

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

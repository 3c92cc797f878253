// Element-wise float functions, Softmax and layer normalization with 512-bit vectors.
#include "engine/kernels/avx512_vnni/float_vector.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/layer_norm_kernel.h"
#include "engine/kernels/scalar/scalar_kernels.h"
#include "engine/kernels/softmax_kernel.h"
#include "engine/kernels/unary_kernel.h"

namespace octet::kernels {

void unary_avx512(const UnaryArgs& a, Range elements) {
  if (!unary<F16>(a, elements)) unary_scalar(a, elements);
}
void softmax_avx512(const SoftmaxArgs& a, Range outer) {
  softmax<F16>(a, outer);
}
void layer_norm_avx512(const LayerNormArgs& a, Range lines) {
  layer_norm<F16>(a, lines);
}

}  // namespace octet::kernels

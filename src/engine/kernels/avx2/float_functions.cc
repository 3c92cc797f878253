// Element-wise float functions, Softmax and layer normalization with 256-bit vectors.
#include "engine/kernels/avx2/float_vector.h"
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/layer_norm_kernel.h"
#include "engine/kernels/scalar/scalar_kernels.h"
#include "engine/kernels/softmax_kernel.h"
#include "engine/kernels/unary_kernel.h"

namespace octet::kernels {

void unary_avx2(const UnaryArgs& a, Range elements) {
  if (!unary<F8>(a, elements)) unary_scalar(a, elements);
}
void softmax_avx2(const SoftmaxArgs& a, Range outer) {
  softmax<F8>(a, outer);
}
void layer_norm_avx2(const LayerNormArgs& a, Range lines) {
  layer_norm<F8>(a, lines);
}

}  // namespace octet::kernels

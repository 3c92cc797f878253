// Element-wise float functions and Softmax with 256-bit vectors.
#include "engine/kernels/avx2/float_vector.h"
#include "engine/kernels/avx2/functions.h"
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

}  // namespace octet::kernels

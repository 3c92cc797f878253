// Element-wise float functions and Softmax with 512-bit vectors.
#include "engine/kernels/avx512_vnni/float_vector.h"
#include "engine/kernels/avx512_vnni/functions.h"
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

}  // namespace octet::kernels

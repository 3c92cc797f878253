// Element-wise float functions, Softmax and layer normalization with the vectors of the compiler.
#include "engine/kernels/generic/float_vector.h"
#include "engine/kernels/generic/generic_kernels.h"
#include "engine/kernels/layer_norm_kernel.h"
#include "engine/kernels/scalar/scalar_kernels.h"
#include "engine/kernels/softmax_kernel.h"
#include "engine/kernels/unary_kernel.h"

namespace octet::kernels {
namespace {

void unary_generic(const UnaryArgs& a, Range elements) {
  if (!unary<F4>(a, elements)) unary_scalar(a, elements);
}
void softmax_generic(const SoftmaxArgs& a, Range outer) {
  softmax<F4>(a, outer);
}
void layer_norm_generic(const LayerNormArgs& a, Range lines) {
  layer_norm<F4>(a, lines);
}

}  // namespace

void add_generic_float_functions(KernelTable& table) {
  table.unary = {unary_generic, Isa::kGeneric};
  table.softmax = {softmax_generic, Isa::kGeneric};
  table.layer_norm = {layer_norm_generic, Isa::kGeneric};
}

}  // namespace octet::kernels

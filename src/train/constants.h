// Between constants of the graph and tensors of LibTorch.
#pragma once
#include <ATen/core/Tensor.h>

#include "ir/tensor.h"

namespace octet::train {

// UserError for kUndefined.
at::ScalarType scalar_type_of(ir::DataType type);

// A contiguous copy on the CPU, of the same type.
at::Tensor to_torch(const ir::Tensor& constant);
ir::Tensor to_constant(const at::Tensor& tensor);
// The same, cast to `type` first.
ir::Tensor to_constant(const at::Tensor& tensor, ir::DataType type);

}  // namespace octet::train

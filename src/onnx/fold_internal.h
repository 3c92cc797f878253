// What the two halves of the evaluator share. Private to fold.cc, fold_arithmetic.cc, fold_movement.cc
// and quantized_constant.cc.
#pragma once
#include <optional>
#include <vector>

#include "ir/axes.h"
#include "onnx/fold.h"

namespace octet::onnx::internal {

using ir::normal_axis;

using Outputs = std::optional<std::vector<ir::Tensor>>;

// Product of dimensions; UserError when it passes what a constant may have.
int64_t bounded_count(const ir::Shape& shape);
// numpy broadcasting; UserError when the shapes do not fit.
ir::Shape broadcast_shapes(const ir::Shape& a, const ir::Shape& b);
// `tensor` broadcast to `shape`.
ir::Tensor expand(const ir::Tensor& tensor, const ir::Shape& shape, FoldBudget& budget);

int64_t int_attribute(const ir::Attributes& attributes, const char* key, int64_t fallback);
std::string string_attribute(const ir::Attributes& attributes, const char* key, const std::string& fallback);
const ir::Tensor& required(const FoldRequest& request, size_t index);

bool is_movement(std::string_view op);
Outputs fold_movement(const FoldRequest& request, FoldBudget& budget);

bool is_arithmetic(std::string_view op);
Outputs fold_arithmetic(const FoldRequest& request, FoldBudget& budget);

}  // namespace octet::onnx::internal

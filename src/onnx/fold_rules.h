// Private to fold*.cc: what the rules of folding are written with, and those that index tensors.
#pragma once
#include "ir/evaluate_parts.h"
#include "onnx/fold.h"

namespace octet::onnx {

using FoldedOutputs = std::optional<std::vector<ir::Tensor>>;

// UserError when the input is absent.
const ir::Tensor& required(const FoldRequest& request, size_t index);
// Integers of 32 or 64 bits; UserError else.
std::vector<int64_t> int_input(const FoldRequest& request, size_t index);
int64_t int_attribute(const FoldRequest& request, const char* key, int64_t fallback);

FoldedOutputs fold_trilu(const FoldRequest& request, ir::MemoryBudget& budget);
FoldedOutputs fold_cumulative_sum(const FoldRequest& request, ir::MemoryBudget& budget);
FoldedOutputs fold_gather_elements(const FoldRequest& request, ir::MemoryBudget& budget);
FoldedOutputs fold_gather_nd(const FoldRequest& request, ir::MemoryBudget& budget);
FoldedOutputs fold_non_zero(const FoldRequest& request, ir::MemoryBudget& budget);
FoldedOutputs fold_one_hot(const FoldRequest& request, ir::MemoryBudget& budget);
FoldedOutputs fold_eye_like(const FoldRequest& request, ir::MemoryBudget& budget);
FoldedOutputs fold_is_nan(const FoldRequest& request, ir::MemoryBudget& budget);

}  // namespace octet::onnx

// The evaluations of evaluate.h, one for each family of operators; ops.def names them. A rule sees a node that stands
// alone: all its inputs are constants (or absent), and its shape rule has set the types of its outputs. It returns the
// outputs in order, or nothing for what it refuses.
#pragma once
#include <optional>
#include <vector>

#include "ir/evaluate.h"

namespace octet::ir {

using Tensors = std::optional<std::vector<Tensor>>;

#define OCTET_OP(kind, min_inputs, max_inputs, max_outputs, infer, evaluate, ...) \
  Tensors evaluate(const Node& node, MemoryBudget& budget);
#include "ir/ops.def"
#undef OCTET_OP

}  // namespace octet::ir

// Evaluates operators whose inputs are constants. Exporters write shape arithmetic (Shape, Gather, Concat, Range, Where
// ...) and rearranged weights (Transpose, Reshape, Cast) as nodes; the importer computes them away, so operators that
// appear only there need no place in the graph. Those that have one are computed by ir::evaluate(). Forms are those of
// the newest opset (upgrade.h runs first).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/evaluate.h"

namespace octet::onnx {

struct FoldRequest {
  std::string_view op;  // ONNX name, default domain
  const std::string& name;
  const ir::Attributes& attributes;
  std::vector<const ir::Tensor*> inputs;  // nullptr: an optional input that is absent
  size_t outputs = 1;
};

// Operators that are folded, whatever the size of their inputs: they move elements, or take a time that goes with the
// number of elements. "Shape" and "Size" are the builder's: they read types, not values.
bool can_fold(std::string_view op);
// Those of them that the graph has no operator for.
std::vector<std::string> folded_operators();
// Those that compute nothing.
bool only_moves(std::string_view op);

// The outputs, or nothing when these data types are not covered. UserError for inputs that do not fit each other (an
// index out of range, a division by zero).
std::optional<std::vector<ir::Tensor>> fold(const FoldRequest& request, ir::MemoryBudget& budget);

}  // namespace octet::onnx

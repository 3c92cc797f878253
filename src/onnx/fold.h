// Evaluates operators whose inputs are constants. Exporters write shape arithmetic (Shape, Gather, Concat, Range,
// Where,
// ...) and rearranged weights (Transpose, Reshape, Cast) as nodes; the importer computes them away, so operators that
// appear only there need no place in the graph. Forms are those of the newest opset (upgrade.h runs first).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace octet::onnx {

struct FoldRequest {
  std::string_view op;  // ONNX name, default domain
  const ir::Attributes& attributes;
  std::vector<const ir::Tensor*> inputs;  // nullptr: an optional input that is absent
  size_t outputs = 1;
};

// What folding may allocate in all. A small file can describe huge constants (Expand, ConstantOfShape, Range).
class FoldBudget {
 public:
  explicit FoldBudget(int64_t bytes) : left_(bytes) {}
  // UserError when no more is left.
  void charge(int64_t bytes);

 private:
  int64_t left_;
};

// Operators that the evaluator knows. "Shape" and "Size" are the builder's: they read types, not values.
bool can_fold(std::string_view op);

// The outputs, or nothing when this evaluator does not cover these data types. UserError for inputs that do not fit
// each other (an index out of range, a division by zero).
std::optional<std::vector<ir::Tensor>> fold(const FoldRequest& request, FoldBudget& budget);

}  // namespace octet::onnx

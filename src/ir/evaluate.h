// What the operators compute, in the plainest way: one scalar rule a family of operators, named in ops.def, for all
// that needs values without an engine or a trainer. The importer and the passes fold constants with it; the tests judge
// the engine by it, which shares no code with it but numerics/.
//
// Arithmetic: float32 and float64 are computed in double and rounded once a node, which for + - * / and sqrt equals
// float32 arithmetic; integers in int64 (wrapping, as the processor does), so shape arithmetic is exact; quantizers by
// numerics/. Movement is exact for every data type.
//
// Refused (no result) is what has no answer or is not needed:
// - float16 and bfloat16, but for movement and as source of a Cast: the importer reads them as float32;
// - integers, where an operator is one of floats (Exp, Conv, Softmax ...);
// - the largest element, product, sum or mean of no elements;
// - the second and third output of a BatchNormalization, which only training makes;
// - a ConvTranspose whose padding follows from its output's size;
// - Resize with antialias, exclude_outside, keep_aspect_ratio_policy or tf_crop_and_resize.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace octet::ir {

// What evaluations may allocate in all. A small file can describe huge tensors (Expand, Pad).
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t bytes = std::numeric_limits<int64_t>::max()) : left_(bytes) {}
  // UserError when no more is left.
  void charge(int64_t bytes);

 private:
  int64_t left_;
};

// The outputs of a node of this kind, name and attributes, and with as many outputs, for the given inputs (nullptr: an
// optional input that is absent); the node's own inputs do not matter. Its shape rule runs first, so the shapes are
// those of infer_node(), and so are the errors: a UserError that names the node says what does not fit. An integer
// division by zero and a budget that does not suffice are UserErrors, too. Nothing for what is refused.
std::optional<std::vector<Tensor>> evaluate(const Node& node, const std::vector<const Tensor*>& inputs,
                                            MemoryBudget& budget);

}  // namespace octet::ir

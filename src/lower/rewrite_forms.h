// Operators in forms that the engine has no step for become equal combinations of those it has. Passes of the compiler
// on its own copy of the graph (rewrites.h has their order); sizes are static and types are inferred. They return the
// number of changes.
#pragma once
#include "ir/graph.h"

namespace octet::lower {

// - Gemm with a transposed or scaled operand, a matrix as C, or two computed operands: Transpose, Mul, MatMul, Add
//   around the Gemm that is left; factors go into constants.
// - MatMul with a vector operand, or whose batch dimensions broadcast: Reshape, Expand and MatMul. MatMul of rank 3 and
//   more by a constant matrix becomes one of rank 2 over all rows, with its bias and its quantizers.
// - Mish: Softplus, Tanh and Mul.
// - Conv, ConvTranspose, BatchNormalization and pools over one axis: the same over an image of one row.
// UserError for Dropout in training mode, and for its mask as a result.
int rewrite_forms(ir::Graph& graph);

// A quantizer of a tensor of another rank than 2 and 4, which have no layout of codes, works on its rows: Reshape,
// FakeQuantize, Reshape.
int flatten_quantizers(ir::Graph& graph);

// Reshape, Flatten, Squeeze and Unsqueeze behind one another become one Reshape, or none.
int collapse_reshapes(ir::Graph& graph);

}  // namespace octet::lower

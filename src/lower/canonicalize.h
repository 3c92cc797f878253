// Passes of the compiler on its own copy of the graph (rewrites.h has their order). None changes a result; they return
// the number of changes.
#pragma once
#include <cstdint>

#include "ir/graph.h"

namespace octet::lower {

// MatMul by a constant (rank 2) with or without an Add of a constant row becomes Gemm; Conv without bias followed by an
// Add of one constant for each channel becomes Conv with bias. Requires types.
int fold_bias_adds(ir::Graph& graph);

// Quantizers of one tensor with the same parameters become one.
int merge_quantizers(ir::Graph& graph);

// Moves a quantizer of the only kind of reader from behind an operator that commutes with it (moved_codes.h) to its
// inputs, where the codes come through: the engine moves them, or the products that read them read what lies before.
// What reads the quantized tensor then reads the operator's output, which takes the quantized tensor's name. Requires
// types; leaves those of new values set.
int hoist_quantizers(ir::Graph& graph);

}  // namespace octet::lower

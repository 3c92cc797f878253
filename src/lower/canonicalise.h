// Passes of the compiler on its own copy of the graph. None changes a result.
#pragma once
#include <cstdint>

#include "ir/graph.h"

namespace octet::lower {

// Identity, Dropout and Cast between floats go. An output keeps its name.
void remove_identities(ir::Graph& graph);

// MatMul by a constant (rank 2) with or without an Add of a constant row becomes Gemm; Conv without bias followed by an
// Add of one constant for each channel becomes Conv with bias. Requires types.
void fold_bias_adds(ir::Graph& graph);

// Quantisers of one tensor with the same parameters become one.
void merge_quantizers(ir::Graph& graph);

// Moves a quantiser of the only kind of reader from behind an operator that commutes with it (moved_codes.h) to its
// inputs, where the codes come through: the engine moves them, or the products that read them read what lies before.
// What reads the quantised tensor then reads the operator's output, which takes the quantised tensor's name. Requires
// types; leaves those of new values set.
void hoist_quantizers(ir::Graph& graph);

}  // namespace octet::lower

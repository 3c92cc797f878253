// Where codes go through operators that move or compare elements.
#pragma once
#include "ir/graph.h"

namespace octet::lower {

// May a quantizer behind this operator move before it? It commutes with it (ir/traits.h), and something is won.
bool lets_quantizer_pass(const ir::Node& node);

// Does the engine have a step on codes for such an operator (or nothing to do)? It moves the others as floats.
bool moves_codes(const ir::Node& node);

// The quantized tensor of which `value` is a move (of Concat and Split: of their first input), or nullptr.
const ir::Value* codes_before_moves(const ir::Value* value);

// A product or convolution with quantized weights whose input is a quantized tensor that was moved as floats
// (Transpose, most Reshapes, DepthToSpace ...) gets a quantizer of its own with the same parameters. The moved numbers
// are multiples of the scale, so it makes the codes that were there: the layer is INT8. Requires types; leaves those of
// new values set. Returns the number of layers.
int quantize_behind_moves(ir::Graph& graph);

}  // namespace octet::lower

// What kind of operator a node is, where the row of ops.def (ops.h, Trait) does not say all of it.
#pragma once
#include <cstddef>

#include "ir/graph.h"

namespace octet::ir {

// The inputs 0 .. n - 1 are data; those behind them are weights, shapes, limits.
size_t data_inputs(const Node& node);

// f(fake_quantize(x)) == fake_quantize(f(x)) for every quantizer with one scale for the tensor (of several data inputs:
// the same for all): codes go through f as they are, and Relu is a maximum of codes. The operators that pick or repeat
// elements, the largest of a window, and Relu; of the ways to Resize the nearest.
//
// Those who move quantizers or codes begin with this list, and say what they leave out and why. Pad is on none of their
// lists by itself: whether its fill survives depends on the quantizer.
bool commutes_with_quantizer(const Node& node);

// Does training change a constant that is input `index` of such a node?
bool is_parameter_input(OpKind kind, size_t index);

}  // namespace octet::ir

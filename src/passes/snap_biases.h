// Puts biases on the grid of the INT8 accumulator, so that the fake-quantized float graph is the deployed arithmetic.
//
// Precondition: frozen scales. What: the constant bias of every Conv, ConvTranspose and Gemm whose activation and
// weights are both quantized becomes float(b32) * (s_x * s_w) with b32 = numerics::quantize_bias(bias, s_x, s_w), s_w
// that of its output channel. The engine computes the same b32 from either value, so nothing changes there; without it
// the graph's sums differ from the engine's by up to half a unit of the accumulator, which moves one code in some
// thousands across a rounding border. Biases of a node one of which does not fit int32 stay as they are: its codes
// would be those of another bias, and the engine computes the node in float32.
// Test: tests/passes/snap_biases_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many biases were put on the grid. Nodes that share one, as the heads of RetinaNet and FCOS do over their
// levels, have grids of their own: from here on each has a bias of its own, where the grids differ.
int snap_biases(ir::Graph& graph);

}  // namespace octet::passes

// Moves quantizers of activations to what computes.
//
// What: a FakeQuantize with one scale behind a MaxPool, a Concat or what only moves elements is put before it, on each
// of its inputs: quantize(max(a, b)) = max(quantize(a), quantize(b)), as rounding is monotone, and elements are what
// they are wherever they lie. So the quantizer stands behind the convolution whose sum it rounds, where the compiler
// has it too (lower/moved_codes.h). Others who read the value between keep it. Why: whoever computes with integers
// (train/executor.h, integer_sums) rounds each sum once. Precondition: inferred types. The graph computes the same
// bits. Outputs of the graph stay. Test: tests/passes/raise_quantizers_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many times a quantizer was moved over a node.
int raise_quantizers(ir::Graph& graph);

}  // namespace octet::passes

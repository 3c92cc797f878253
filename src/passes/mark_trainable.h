// Which constants an optimizer updates. ONNX files do not say, so an imported graph is marked by what uses them.
// Precondition: none. Sets Value::trainable to true for floating-point weights and biases of Conv, ConvTranspose, Gemm
// and MatMul (also behind a FakeQuantize, and a bias that an Add gives to a MatMul), scale and shift of normalizations
// and the slope of PRelu. Other constants are trainable where the file said so, as that of a zoo network does of a
// position embedding. Test: tests/passes/mark_trainable_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many constants are trainable.
int mark_trainable(ir::Graph& graph);

}  // namespace octet::passes

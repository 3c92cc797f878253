// Operators that a file applies to 8-bit codes (ONNX Runtime's QOperator format does, and so do some QDQ files) become
// the same operators on numbers.
#pragma once
#include "ir/graph.h"

namespace octet::onnx {

// Precondition: types are inferred. MaxPool, GlobalMaxPool, ArgMax, Identity, nearest Resize and everything that moves
// elements, applied to the result of a QuantizeLinear with one scale, gets DequantizeLinear in front and, where it
// returns codes, QuantizeLinear behind. They commute with quantization, so every code stays as it is. Relu of int8 is
// lifted where the zero point is 0, Pad where its fill is a code, Concat where all inputs have equal parameters; nodes
// that do not fit stay as they are.
void lift_codes(ir::Graph& graph);

}  // namespace octet::onnx

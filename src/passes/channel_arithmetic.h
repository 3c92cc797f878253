// Batch normalization, and other arithmetic with a constant for each channel, that is written as Add, Sub, Mul and Div.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Add, Sub, Mul, or Div by a constant, that is the only reader of a layer into which it can be folded, as a batch
// normalization is: becomes part of its weights and bias. The constant is a scalar or lies along the channels: axis 1,
// or the last axis of a MatMul's rows, which has no bias and therefore takes factors only. False: nothing is changed.
bool fold_channel_arithmetic(ir::Graph& graph, ir::Node* node);

}  // namespace octet::passes

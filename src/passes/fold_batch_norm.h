// Folds batch normalization into the weights of the node before it.
//
// Precondition: inference form (training_mode 0); constant scale, offset, mean and variance.
// What: BatchNormalization that is the only consumer of a Conv, ConvTranspose, Gemm or MatMul of matrices with constant
// weights, quantized or not, each used only there, becomes part of its weights and bias: w' = w * gamma / sqrt(variance
// + epsilon), b' = (b - mean) * gamma / sqrt(variance + epsilon) + offset; computed in float64, rounded once. Constants
// of the normalization may be shared with other nodes; weights that are shared are copied first. So does a
// normalization that is written as Sub, Mul, Div and Add with constants of the channels (channel_arithmetic.h). Names:
// the folded node keeps its name and its weights theirs; its output takes the name of the normalization's output,
// because that is the tensor whose values it now holds. A new bias is called "<weight>.bias", as PyTorch would
// ("conv1.weight" -> "conv1.bias"). Trainable flags carry over: the new bias is trainable when the offset was.
// A normalization that follows anything else (pre-activation networks) stays.
// Test: tests/passes/fold_batch_norm_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many were folded. UserError naming the node when a folded weight would not be finite.
int fold_batch_norm(ir::Graph& graph);

}  // namespace octet::passes

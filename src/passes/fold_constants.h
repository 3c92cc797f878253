// Computes what depends on constants alone, and folds constant arithmetic into weights.
//
// Precondition: inferred types.
// What:
//  - What operators compute element by element from constants, or move of them, and Casts, become constants, where they
//    give float32; named as the node's output. (The importer folds shape arithmetic on integers.)
//  - Add, Sub, Mul or Div of a constant (one element, or one for each channel) to the output of a Conv, ConvTranspose
//  or
//    Gemm that has no other reader becomes part of weights and bias, computed in float64 and rounded once. The output
//    takes the name of the folded node's.
//  - MatMul of a matrix by constant weights, with a constant vector added to its output, becomes a Gemm.
// Trainable constants are folded only by what keeps each of their elements (reshapes, Transpose, Neg ...), and never
// merged with each other, except into the weights and biases they scale and shift. Test:
// tests/passes/fold_constants_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many nodes were folded away.
int fold_constants(ir::Graph& graph);

}  // namespace octet::passes

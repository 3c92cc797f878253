// Computes what depends on constants alone, and folds constant arithmetic into weights.
//
// Precondition: inferred types.
// What:
//  - Add, Sub, Mul, Div, Neg, Identity, Cast to float32, Transpose, Reshape, Squeeze, Unsqueeze of float32 constants
//    become constants, named as the node's output. (The importer folds shape arithmetic on integers.)
//  - Add, Sub, Mul or Div of a constant (one element, or one for each channel) to the output of a Conv, ConvTranspose
//  or
//    Gemm that has no other reader becomes part of weights and bias, computed in float64 and rounded once. The output
//    takes the name of the folded node's.
//  - MatMul of a matrix by constant weights, with a constant vector added to its output, becomes a Gemm.
// Trainable constants are never merged with each other, except into the weights and biases they scale and shift.
// Test: tests/passes/fold_constants_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many nodes were folded away.
int fold_constants(ir::Graph& graph);

}  // namespace octet::passes

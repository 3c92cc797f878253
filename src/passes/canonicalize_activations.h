// Writes activation functions in the one form that later passes know.
//
// Precondition: inferred types.
// What, with constants a, b:
//   Clip(x, 0) and Clip(x, 0, infinity), Max(x, 0)      -> Relu(x)
//   Min(Relu(x), b), Clip(Relu(x), a <= 0, b)           -> Clip(x, 0, b), b > 0
//   Relu(Relu(x)), Relu(Clip(x, a >= 0, b))             -> the inner one
// x * Sigmoid(x) stays: it is the canonical Swish. Nodes keep their names and outputs.
// Test: tests/passes/rewrites_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many nodes were changed or removed.
int canonicalize_activations(ir::Graph& graph);

}  // namespace octet::passes

// Takes out the layout changes that converters from NHWC frameworks leave behind.
//
// Precondition: inferred types (and, for a complete result, remove_identity and fold_constants before it).
// What: tensors that are joined by operators which can compute in any order of axes (permuted_nodes.h) and by
// Transposes get one order together, the one that leaves the fewest Transposes, and these at the inputs and outputs of
// the graph rather than inside; then those between them are gone. So a graph of an NHWC framework, with Transposes
// around each convolution and Pad, Concat, ReduceMean, Add ... in NHWC between them, becomes the NCHW graph that it
// came from, with at most one Transpose behind an NHWC input and one before an NHWC output. Constants are put in the
// order that is needed, also the weights of a product behind a Flatten. A Transpose that moves axes of one element
// alone becomes a Reshape; one of a Transpose becomes one; what changes nothing goes. A group whose estimate says that
// nothing is saved stays; where groups meet it is not exact, and a graph may keep or gain one. Nodes and their outputs
// keep their names: a value that is moved before a Transpose holds the same numbers in another order, and a new
// Transpose is called "<value>/transpose". Graph inputs and outputs keep layout and name. Test:
// tests/passes/cancel_transposes_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many Transpose nodes there are fewer than before.
int cancel_transposes(ir::Graph& graph);

}  // namespace octet::passes

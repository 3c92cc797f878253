// Takes out the layout changes that converters from NHWC frameworks leave behind.
//
// Precondition: inferred types (and, for a complete result, remove_identity and fold_constants before it).
// What, until nothing changes:
//  - Transpose of a Transpose becomes one; a Transpose that changes nothing goes.
//  - An element-wise node (or Concat, with its axis changed) whose inputs are all transposed in the same way computes
//  on
//    the tensors before, and its result is transposed: so transposes meet their inverses further down. Constant
//    operands are transposed here. Only where those transposed inputs have no other kind of reader.
// Nodes and their outputs keep their names: a value that is moved before a Transpose holds the same numbers in another
// order, and the moved Transpose is called "<value>/transpose". Graph outputs keep layout and name.
// Test: tests/passes/cancel_transposes_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

// Returns how many Transpose nodes there are fewer than before.
int cancel_transposes(ir::Graph& graph);

}  // namespace octet::passes

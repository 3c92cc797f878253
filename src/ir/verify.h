// Checks that a graph is whole. Run after import, after every pass in debug dumps, and before export or lowering.
#pragma once
#include "ir/graph.h"

namespace octet::ir {

// UserError naming the first node or value that breaks a rule:
// - names of nodes and of values are unique and the graph finds each by its name;
// - nodes stand in execution order; producers, user lists, inputs and outputs agree with each other;
// - arity, attribute names and attribute types are those of the ops table;
// - every output has the type that its node's shape rule gives (run infer_shapes after changing a graph);
// - FakeQuantize: constant positive finite scales, constant integral zero points within [qmin, qmax], a known state.
void verify(const Graph& graph);

// UserError naming the first floating-point initializer that holds NaN or infinity, and where.
void check_finite_constants(const Graph& graph);

}  // namespace octet::ir

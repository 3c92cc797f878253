// Takes nodes out that do nothing in inference.
//
// What: Identity; Dropout that drops nothing and whose mask nobody reads; Cast to the type that its input has; products
// and quotients with 1, sums and differences with 0 (the alpha of Paddle's Swish), unless that number is trained;
// Transpose, Reshape, Squeeze, Unsqueeze and Flatten stay. A graph output keeps its name; a node between a graph input
// (or another output) and a graph output stays, because the two names cannot be one value. Before training keep the
// Dropouts. Test: tests/passes/rewrites_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

struct RemoveIdentityOptions {
  bool keep_dropout = false;
};

// Returns how many were removed.
int remove_identity(ir::Graph& graph, const RemoveIdentityOptions& options = {});

}  // namespace octet::passes

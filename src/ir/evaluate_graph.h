// A whole network by ir::evaluate(): slow, plain, and without code in common with the engine, so it can judge it.
#pragma once
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace octet::ir {

// Outputs in the order of the graph, for inputs in its order. `seen` is told every input and every value that a node
// makes, in execution order; a tensor is kept until its last reader has run. UserError naming the node where an
// operator has no evaluation, or as evaluate().
std::vector<Tensor> evaluate_graph(const Graph& graph, const std::vector<Tensor>& inputs,
                                   const std::function<void(const Value&, const Tensor&)>& seen = {});

}  // namespace octet::ir

// A quantized network of which only some nodes are: to see what each costs.
#pragma once
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

// The nodes that read what a FakeQuantize gives, by name, in the order of the graph.
std::vector<std::string> quantized_nodes(const ir::Graph& graph);

// A copy in which these alone read quantized tensors; the others read what lies before the quantizers, weights as they
// are. Outputs of the graph that a quantizer makes stay. Test: tests/passes/partial_quantization_test.cc.
ir::Graph quantized_in_part(const ir::Graph& graph, const std::unordered_set<std::string>& nodes);

}  // namespace octet::passes

// The nodes of a file that matter, in an order in which they can be executed.
#pragma once
#include <string>
#include <vector>

#include "onnx/proto.h"

namespace octet::onnx {

// "node 'n' (Op)", with the domain of the operator unless it is the default one.
std::string text_of(const proto::Node& node);

// The nodes that some output needs, in the order of the file wherever that is an execution order. UserError for a cycle
// and for a value that two nodes make.
std::vector<const proto::Node*> live_nodes_in_order(const proto::Graph& graph);

// UserError for operators that Octet cannot read: names the first with its node and domain, the others, and what is
// supported.
void require_known(const std::vector<const proto::Node*>& nodes);

}  // namespace octet::onnx

// Nodes that have graphs as attributes, of which If and Loop are read: the names that cross their borders.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/proto.h"

namespace octet::onnx {

// The names of values that the node reads: its inputs, and what its subgraphs take from outside.
std::vector<std::string> names_read(const proto::Node& node);

// Whether one of these nodes, or one of a subgraph of theirs, is a Shape or a Size.
bool reads_shapes(const std::vector<const proto::Node*>& nodes);

// Gives values their new names, in the node and its subgraphs; names that are not in the table stay.
void rename_values(proto::Node& node, const std::unordered_map<std::string, std::string>& names);

}  // namespace octet::onnx

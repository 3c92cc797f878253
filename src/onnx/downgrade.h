// Writes nodes in the forms of an older opset: the counterpart of upgrade.h.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "onnx/upgrade.h"

namespace octet::onnx {

struct DowngradeContext {
  int opset;
  // Adds an initializer under a new name that starts with the hint; returns the name.
  std::function<std::string(const std::string& hint, ir::Tensor)> add_constant;
  std::function<std::string(const std::string& hint)> fresh_name;
};

// The ONNX nodes of one node of the graph (any kind but FakeQuantize), in execution order. UserError names the node
// when the opset has no form for it.
std::vector<SourceNode> downgrade(const ir::Node& node, const DowngradeContext& context);

}  // namespace octet::onnx

#include "onnx/subgraphs.h"

#include <unordered_set>

namespace octet::onnx {
namespace {

void add_names_read(const proto::Node& node, std::vector<std::string>& out) {
  out.insert(out.end(), node.inputs.begin(), node.inputs.end());
  for (const proto::Attribute& attribute : node.attributes) {
    if (!attribute.g) continue;
    const proto::Graph& graph = *attribute.g;
    std::unordered_set<std::string> own;
    for (const proto::Tensor& tensor : graph.initializers) own.insert(tensor.name);
    for (const proto::ValueInfo& input : graph.inputs) own.insert(input.name);
    for (const proto::Node& inner : graph.nodes) own.insert(inner.outputs.begin(), inner.outputs.end());
    std::vector<std::string> inside;
    for (const proto::Node& inner : graph.nodes) add_names_read(inner, inside);
    for (const proto::ValueInfo& output : graph.outputs) inside.push_back(output.name);
    for (const std::string& name : inside)
      if (!own.count(name)) out.push_back(name);
  }
}

bool reads_shape(const proto::Node& node) {
  if (node.op_type == "Shape" || node.op_type == "Size") return true;
  for (const proto::Attribute& attribute : node.attributes) {
    if (!attribute.g) continue;
    for (const proto::Node& inner : attribute.g->nodes)
      if (reads_shape(inner)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> names_read(const proto::Node& node) {
  std::vector<std::string> out;
  add_names_read(node, out);
  return out;
}

bool reads_shapes(const std::vector<const proto::Node*>& nodes) {
  for (const proto::Node* node : nodes)
    if (reads_shape(*node)) return true;
  return false;
}

void rename_values(proto::Node& node, const std::unordered_map<std::string, std::string>& names) {
  const auto renamed = [&](std::string& name) {
    if (const auto it = names.find(name); it != names.end()) name = it->second;
  };
  for (std::string& name : node.inputs) renamed(name);
  for (std::string& name : node.outputs) renamed(name);
  for (proto::Attribute& attribute : node.attributes) {
    if (!attribute.g) continue;
    proto::Graph graph = *attribute.g;
    for (proto::ValueInfo& input : graph.inputs) renamed(input.name);
    for (proto::Tensor& tensor : graph.initializers) renamed(tensor.name);
    for (proto::Node& inner : graph.nodes) rename_values(inner, names);
    for (proto::ValueInfo& output : graph.outputs) renamed(output.name);
    attribute.g = std::make_shared<const proto::Graph>(std::move(graph));
  }
}

}  // namespace octet::onnx

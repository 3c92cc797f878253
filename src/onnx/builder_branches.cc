// If whose condition is known before the network runs: exporters write one where a shape decides.
#include "onnx/at_node.h"
#include "onnx/builder.h"
#include "onnx/node_order.h"
#include "onnx/subgraphs.h"

namespace octet::onnx {

void Builder::note_uses(const proto::Graph& graph, const std::vector<const proto::Node*>& nodes) {
  for (const proto::Node* node : nodes)
    for (std::string& name : names_read(*node)) used_.insert(std::move(name));
  for (const proto::ValueInfo& output : graph.outputs) used_.insert(output.name);
}

bool Builder::condition_of(const proto::Node& node) {
  if (node.inputs.size() != 1 || node.inputs[0].empty()) fail("should have one input, its condition");
  const std::string& name = node.inputs[0];
  if (!entry(name).varying.empty()) fail_varying(name);
  const auto condition = constant(name);
  if (!condition)
    fail("its condition '", name,
         "' is computed by the network; supported is an If whose branch is known before the network runs");
  if (condition->data_type() != ir::DataType::kBool || condition->size() != 1)
    fail("its condition '", name, "' should be one bool");
  return condition->bytes()[0] != std::byte{0};
}

void Builder::add_chosen_branch(const proto::Node& node) {
  const char* key = condition_of(node) ? "then_branch" : "else_branch";
  const proto::Graph* branch = nullptr;
  for (const proto::Attribute& a : node.attributes)
    if (a.name == key) branch = a.g.get();
  if (!branch) fail("has no graph '", key, "'");
  if (!branch->inputs.empty()) fail("its ", key, " has inputs, which a branch cannot have");
  if (branch->outputs.size() < node.outputs.size())
    fail("its ", key, " has ", branch->outputs.size(), " outputs, expected ", node.outputs.size());
  if (branch->sparse_initializers != 0) fail("its ", key, " has sparse initializers, which are not supported");

  // Both branches, and other Ifs, may use the same names.
  std::unordered_map<std::string, std::string> names;
  const auto own_name = [&](const std::string& name) {
    if (!name.empty() && !names.count(name)) names[name] = fresh_name(name);
  };
  for (const proto::Tensor& tensor : branch->initializers) own_name(tensor.name);
  for (const proto::Node& inner : branch->nodes)
    for (const std::string& output : inner.outputs) own_name(output);
  proto::Graph& made = branches_.emplace_back(*branch);
  made.outputs.resize(node.outputs.size());
  for (proto::Tensor& tensor : made.initializers) {
    if (tensor.name.empty()) fail("an initializer of its ", key, " has no name");
    tensor.name = names.at(tensor.name);
    define(tensor.name).initializer = &tensor;
  }
  for (proto::Node& inner : made.nodes) rename_values(inner, names);
  for (proto::ValueInfo& output : made.outputs)
    if (const auto it = names.find(output.name); it != names.end()) output.name = it->second;

  const std::vector<const proto::Node*> nodes = live_nodes_in_order(made);
  note_uses(made, nodes);
  require_known(nodes);
  for (const proto::Node* inner : nodes) at_node(text_of(*inner), [&] { add_source(*inner); });
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    add({"Identity",
         node.name.empty() ? node.outputs[i] : fresh_name(node.name),
         {made.outputs[i].name},
         {node.outputs[i]},
         {}});
  }
}

}  // namespace octet::onnx

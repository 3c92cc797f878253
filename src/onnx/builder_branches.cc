// If: exporters write one where a shape decides. Where its condition is known before the network runs, the nodes of the
// branch that it chooses take its place.
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
  OCTET_CHECK(condition.has_value(), name);
  if (condition->data_type() != ir::DataType::kBool || condition->size() != 1)
    fail("its condition '", name, "' should be one bool");
  return condition->bytes()[0] != std::byte{0};
}

void Builder::add_chosen_branch(const proto::Node& node) {
  if (node.inputs.size() == 1 && !node.inputs[0].empty() && !entry(node.inputs[0]).known_before_run())
    return add_if_to_program(node);
  const proto::Graph& made = add_branch(node, condition_of(node) ? "then_branch" : "else_branch");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    add_source({node.name.empty() ? node.outputs[i] : fresh_name(node.name),
                "Identity",
                "",
                "",
                {made.outputs[i].name},
                {node.outputs[i]},
                {}});
  }
}

// The nodes of a branch, to the graph and to the program; the branch with names of its own.
const proto::Graph& Builder::add_branch(const proto::Node& node, const std::string& key) {
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
  return made;
}

}  // namespace octet::onnx

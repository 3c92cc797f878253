// If: exporters write one where a shape decides. Where its condition is known before the network runs, the nodes of the
// branch that it chooses take its place. Other Ifs, and Loops, lie in the program behind the graph.
#include <algorithm>

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
  const proto::Graph& made = add_branch(node, condition_of(node) ? "then_branch" : "else_branch", node.outputs.size());
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

const proto::Graph& Builder::graph_attribute(const proto::Node& node, const std::string& key) const {
  for (const proto::Attribute& a : node.attributes)
    if (a.name == key && a.g) return *a.g;
  fail("has no graph '", key, "'");
}

// The nodes of a branch, to the graph and to the program; the branch with names of its own.
const proto::Graph& Builder::add_branch(const proto::Node& node, const std::string& key, size_t outputs,
                                        const std::vector<dense::Type>& inputs) {
  const proto::Graph* const branch = &graph_attribute(node, key);
  if (branch->inputs.size() != inputs.size())
    fail("its ", key, " has ", branch->inputs.size(), " inputs, expected ", inputs.size());
  if (branch->outputs.size() < outputs)
    fail("its ", key, " has ", branch->outputs.size(), " outputs, expected ", outputs);
  if (branch->sparse_initializers != 0) fail("its ", key, " has sparse initializers, which are not supported");

  // Both branches, and other Ifs, may use the same names.
  std::unordered_map<std::string, std::string> names;
  const auto own_name = [&](const std::string& name) {
    if (!name.empty() && !names.count(name)) names[name] = fresh_name(name);
  };
  for (const proto::ValueInfo& input : branch->inputs) own_name(input.name);
  for (const proto::Tensor& tensor : branch->initializers) own_name(tensor.name);
  for (const proto::Node& inner : branch->nodes)
    for (const std::string& output : inner.outputs) own_name(output);
  proto::Graph& made = branches_.emplace_back(*branch);
  made.outputs.resize(outputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (made.inputs[i].name.empty()) fail("an input of its ", key, " has no name");
    made.inputs[i].name = names.at(made.inputs[i].name);
    define(made.inputs[i].name).in_program = new_program_value(made.inputs[i].name, inputs[i]);
  }
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

void Builder::add_if_to_program(const proto::Node& node) {
  dense::Operation operation{"If", node.name.empty() ? node.outputs.at(0) : node.name, {}, {}, {}, {}};
  operation.inputs.push_back(value_in_program(node.inputs[0]));
  std::vector<dense::Operation>* const outside = operations_;
  for (const char* key : {"then_branch", "else_branch"}) {
    dense::Block block;
    operations_ = &block.operations;
    const proto::Graph& branch = add_branch(node, key, node.outputs.size());
    for (const proto::ValueInfo& output : branch.outputs) block.outputs.push_back(value_in_program(output.name));
    operations_ = outside;
    operation.branches.push_back(std::move(block));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    operation.outputs.push_back(define_in_program(node.outputs[i], operation.name, operation.branches[0].outputs[i]));
  operations_->push_back(std::move(operation));
}

// Exporters write Loops where a program of Python loops over what the network finds.
void Builder::add_loop(const proto::Node& node) {
  dense::Operation operation{"Loop", node.name.empty() ? node.outputs.at(0) : node.name, {}, {}, {}, {}};
  std::vector<std::string> given = node.inputs;
  given.resize(std::max<size_t>(given.size(), 2));
  std::vector<dense::Type> types{dense::Type::kInt64, dense::Type::kBool};
  for (size_t i = 0; i < given.size(); ++i) {
    operation.inputs.push_back(value_in_program(given[i]));
    if (i < 2) continue;
    if (given[i].empty()) fail("input ", i, " is absent");
    types.push_back(program_types_[static_cast<size_t>(operation.inputs.back())]);
  }
  const size_t outputs = graph_attribute(node, "body").outputs.size();
  if (outputs < node.outputs.size() + 1)
    fail("its body has ", outputs, " outputs, expected ", node.outputs.size() + 1, " or more");
  std::vector<dense::Operation>* const outside = operations_;
  dense::Block block;
  operations_ = &block.operations;
  const proto::Graph& body = add_branch(node, "body", outputs, types);
  for (const proto::ValueInfo& input : body.inputs) block.inputs.push_back(entry(input.name).in_program);
  for (const proto::ValueInfo& output : body.outputs) block.outputs.push_back(value_in_program(output.name));
  operations_ = outside;
  for (size_t i = 0; i + 1 < outputs; ++i)
    operation.outputs.push_back(
        define_in_program(i < node.outputs.size() ? node.outputs[i] : "", operation.name, block.outputs[1 + i]));
  operation.branches.push_back(std::move(block));
  operations_->push_back(std::move(operation));
}

// A new value of the type that `like` has.
int Builder::define_in_program(const std::string& name, const std::string& operation, int like) {
  const std::string given = name.empty() ? fresh_name(operation + "_unused") : name;
  Entry& e = define(given);
  return e.in_program = new_program_value(given, program_types_[static_cast<size_t>(like)]);
}

}  // namespace octet::onnx

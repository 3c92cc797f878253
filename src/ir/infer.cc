#include "ir/infer.h"

#include "ir/shape_rule_util.h"

namespace octet::ir {
namespace {

void check_declared(const Graph& graph, const Value& value) {
  if (!value.type.shape) return;
  int64_t count = 1;
  for (const int64_t d : *value.type.shape) {
    if (d < kDynamic || d > kMaxDimension || (d > 0 && (count > kMaxDimension / d || (count *= d) > kMaxDimension)))
      fail("graph '", graph.name, "': input '", value.name, "' has the impossible shape ",
           shape_string(*value.type.shape));
  }
}

}  // namespace

void infer_node(Node& node) {
  const OpInfo& info = node.info();
  const auto count = static_cast<int>(node.inputs.size());
  if (count < info.min_inputs || count > info.max_inputs) {
    const std::string expected = info.min_inputs == info.max_inputs ? str(info.min_inputs)
                                 : info.max_inputs == kVariadic     ? str(info.min_inputs, " or more")
                                                                    : str(info.min_inputs, " to ", info.max_inputs);
    misfit(node, count, " inputs, expected ", expected);
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool required = static_cast<int>(i) < info.min_inputs || info.max_inputs == kVariadic;
    if (required && !node.inputs[i]) misfit(node, "required input ", i, " is absent");
  }
  if (static_cast<int>(node.outputs.size()) > info.max_outputs)
    misfit(node, node.outputs.size(), " outputs, expected at most ", info.max_outputs);
  info.infer(node);
}

std::vector<TensorType> inferred_types(const Node& node) {
  std::vector<Value> values(node.outputs.size());
  Node copy = node;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!node.outputs[i]) continue;
    values[i].name = node.outputs[i]->name, values[i].type = node.outputs[i]->type;
    copy.outputs[i] = &values[i];
  }
  infer_node(copy);
  std::vector<TensorType> types;
  for (Value& value : values) types.push_back(std::move(value.type));
  return types;
}

void check_inputs(const Graph& graph) {
  for (const Value* value : graph.inputs()) check_declared(graph, *value);
}

void infer_shapes(Graph& graph) {
  check_inputs(graph);
  for (const auto& node : graph.nodes()) infer_node(*node);
}

void set_batch(Graph& graph, int64_t batch) {
  require(batch == kDynamic || batch > 0, "the batch size must be positive, not ", batch);
  for (Value* value : graph.inputs()) {
    if (!value->type.shape || value->type.shape->empty())
      fail("graph '", graph.name, "': input '", value->name, "' ", type_string(value->type),
           " has no batch dimension that could be set to ", batch);
    value->type.shape->front() = batch;
  }
  infer_shapes(graph);
}

}  // namespace octet::ir

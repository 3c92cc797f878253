#include "ir/evaluate_graph.h"

#include <unordered_map>

#include "ir/evaluate.h"

namespace octet::ir {

std::vector<Tensor> evaluate_graph(const Graph& graph, const std::vector<Tensor>& inputs,
                                   const std::function<void(const Value&, const Tensor&)>& seen) {
  OCTET_CHECK(inputs.size() == graph.inputs().size(), inputs.size(), " inputs");
  std::unordered_map<const Value*, Tensor> values;
  std::unordered_map<const Value*, size_t> reads_left;
  const auto hold = [&](const Value* value, const Tensor& tensor) {
    if (seen) seen(*value, tensor);
    values[value] = tensor;
    reads_left[value] = value->users.size() + (graph.is_output(value) ? 1 : 0);
  };
  for (size_t i = 0; i < inputs.size(); ++i) hold(graph.inputs()[i], inputs[i]);
  const auto tensor_of = [&](const Value* v) { return v->is_constant() ? &*v->constant : &values.at(v); };
  MemoryBudget budget;
  for (const auto& node : graph.nodes()) {
    std::vector<const Tensor*> tensors;
    for (const Value* v : node->inputs) tensors.push_back(v ? tensor_of(v) : nullptr);
    const auto made = evaluate(*node, tensors, budget);
    require(made.has_value(), "node '", node->name, "' (", node->info().name, ") has no evaluation");
    for (const Value* v : node->inputs)
      if (v != nullptr && !v->is_constant() && --reads_left.at(v) == 0) values.erase(v);
    for (size_t i = 0; i < made->size(); ++i)
      if (node->outputs[i]) hold(node->outputs[i], (*made)[i]);
  }
  std::vector<Tensor> out;
  for (const Value* v : graph.outputs()) out.push_back(*tensor_of(v));
  return out;
}

}  // namespace octet::ir

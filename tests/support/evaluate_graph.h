// Runs a graph by ir::evaluate(), which shares no code with the engine, so it can judge it. Slow: for small graphs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ir/infer.h"

namespace octet::testing {

struct Array {
  ir::Shape shape;
  std::vector<float> data;
};

// Inputs and what nodes make, by name. Throws where an operator has no evaluation.
inline std::map<std::string, Array> evaluate_graph(const ir::Graph& graph, const std::map<std::string, Array>& inputs) {
  std::map<const ir::Value*, ir::Tensor> values;
  for (const ir::Value* v : graph.constants()) values[v] = *v->constant;
  std::map<std::string, Array> out;
  for (const ir::Value* v : graph.inputs()) {
    const Array& x = out[v->name] = inputs.at(v->name);
    values[v] = ir::Tensor::of<float>(x.shape, x.data);
  }
  ir::MemoryBudget budget;
  for (const auto& node : graph.nodes()) {
    std::vector<const ir::Tensor*> tensors;
    for (const ir::Value* v : node->inputs) tensors.push_back(v ? &values.at(v) : nullptr);
    const auto made = ir::evaluate(*node, tensors, budget);
    require(made.has_value(), "node '", node->name, "' (", node->info().name, ") has no evaluation");
    for (size_t i = 0; i < made->size(); ++i) {
      if (!node->outputs[i]) continue;
      values[node->outputs[i]] = (*made)[i];
      out[node->outputs[i]->name] = {(*made)[i].shape(), (*made)[i].to_floats()};
    }
  }
  return out;
}

}  // namespace octet::testing

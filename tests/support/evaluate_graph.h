// Runs a graph by ir::evaluate_graph(), and keeps all that comes up. Slow: for small graphs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/evaluate_graph.h"
#include "ir/infer.h"

namespace octet::testing {

struct Array {
  ir::Shape shape;
  std::vector<float> data;
};

// Inputs and what nodes make, by name. Throws where an operator has no evaluation.
inline std::map<std::string, Array> evaluate_graph(const ir::Graph& graph, const std::map<std::string, Array>& inputs) {
  std::vector<ir::Tensor> tensors;
  for (const ir::Value* v : graph.inputs()) {
    const Array& x = inputs.at(v->name);
    tensors.push_back(ir::Tensor::of<float>(x.shape, x.data));
  }
  std::map<std::string, Array> out;
  ir::evaluate_graph(graph, tensors, [&](const ir::Value& value, const ir::Tensor& tensor) {
    out[value.name] = {tensor.shape(), tensor.to_floats()};
  });
  return out;
}

}  // namespace octet::testing

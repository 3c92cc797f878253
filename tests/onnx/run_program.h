// A graph with a program behind it, run by the plain rules.
#pragma once
#include <algorithm>
#include <vector>

#include "dense/run.h"
#include "ir/evaluate_graph.h"

namespace octet::onnx {

inline std::vector<dense::Tensor> run_program(const ir::Graph& graph, const ir::Tensor& x) {
  dense::Memory memory;
  std::vector<dense::Tensor> inputs;
  const std::vector<ir::Tensor> outputs = ir::evaluate_graph(graph, {x});
  for (size_t i = 0; i < outputs.size(); ++i) {
    inputs.push_back(memory.make(graph.program->inputs.at(i).type, outputs[i].shape()));
    std::copy(outputs[i].bytes().begin(), outputs[i].bytes().end(), inputs.back().data());
  }
  return dense::run(*graph.program, inputs);
}

}  // namespace octet::onnx

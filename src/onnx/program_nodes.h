// The program behind a graph as nodes of a file.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "dense/program.h"
#include "onnx/out_model.h"

namespace octet::onnx {

struct ProgramNodes {
  std::vector<SourceNode> nodes;
  std::vector<std::pair<std::string, ir::Tensor>> constants;
  std::vector<OutValue> outputs;
};

// In the forms of `opset`, 19 or newer. Names are those of the program, but where `fresh_name` finds them taken; those
// of outputs must not be.
ProgramNodes program_nodes(const ir::Graph& graph, const dense::Program& program, int opset,
                           const std::function<std::string(const std::string& hint)>& fresh_name);

}  // namespace octet::onnx

#include "passes/partial_quantization.h"

#include "ir/query.h"

namespace octet::passes {

std::vector<std::string> quantized_nodes(const ir::Graph& graph) {
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) {
    if (is_quantizer(node.get())) continue;
    for (const ir::Value* input : node->inputs)
      if (input && is_quantizer(input->producer)) {
        out.push_back(node->name);
        break;
      }
  }
  return out;
}

ir::Graph quantized_in_part(const ir::Graph& graph, const std::unordered_set<std::string>& nodes) {
  ir::Graph out = graph.clone();
  for (const auto& node : out.nodes()) {
    if (is_quantizer(node.get()) || nodes.count(node->name)) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (const ir::Value* input = node->input(i); input && is_quantizer(input->producer)) {
        ir::Value* whole = input->producer->input(0);
        while (is_quantizer(whole->producer)) whole = whole->producer->input(0);
        out.set_input(node.get(), i, whole);
      }
  }
  out.remove_dead();
  return out;
}

}  // namespace octet::passes

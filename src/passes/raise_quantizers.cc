#include "passes/raise_quantizers.h"

#include <string>
#include <vector>

#include "ir/query.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

// How many of the first inputs hold the elements that it gives out; 0: it does something else.
size_t inputs_that_move(const Node& node) {
  if (node.outputs.size() != 1) return 0;
  switch (node.kind) {
    case OpKind::kConcat:
      return node.inputs.size();
    case OpKind::kMaxPool:
    case OpKind::kGlobalMaxPool:
    case OpKind::kReshape:
    case OpKind::kFlatten:
    case OpKind::kSqueeze:
    case OpKind::kUnsqueeze:
    case OpKind::kTranspose:
    case OpKind::kSlice:
    case OpKind::kDepthToSpace:
    case OpKind::kIdentity:
      return 1;
    default:
      return 0;
  }
}

bool can_be_raised(const Graph& graph, const Node& quantizer) {
  return quantizer.kind == OpKind::kFakeQuantize && quantizer.get_string("state") == ir::kFrozen &&
         ir::scalar(quantizer.input(1)) && quantizer.input(2)->is_constant() &&
         quantizer.input(2)->constant->size() == 1 && quantizer.input(0)->producer &&
         !graph.is_output(quantizer.output()) && inputs_that_move(*quantizer.input(0)->producer) > 0;
}

void raise(Graph& graph, Node* quantizer) {
  const Node& moves = *quantizer->input(0)->producer;
  std::vector<Value*> inputs = moves.inputs;
  const std::string& name = quantizer->name;
  for (size_t i = 0; i < inputs_that_move(moves); ++i)
    inputs[i] = graph.add(OpKind::kFakeQuantize, graph.unique_name(name + "/raised"),
                          {inputs[i], quantizer->input(1), quantizer->input(2)}, quantizer->attributes, quantizer);
  Value* moved = graph.add(moves.kind, graph.unique_name(moves.name + "/of_codes"), std::move(inputs), moves.attributes,
                           quantizer);
  graph.replace_uses(quantizer->output(), moved);
}

}  // namespace

int raise_quantizers(Graph& graph) {
  int raised = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (Node* node : ir::node_list(graph))
      if (can_be_raised(graph, *node) && !node->output()->users.empty()) raise(graph, node), changed = true, ++raised;
    graph.remove_dead();
  }
  return raised;
}

}  // namespace octet::passes

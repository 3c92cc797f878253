#include "passes/remove_identity.h"

#include "ir/query.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

bool does_nothing(const Graph& graph, const Node& node, const RemoveIdentityOptions& options) {
  switch (node.kind) {
    case OpKind::kIdentity:
      return true;
    case OpKind::kDropout: {
      const Value* mask = node.output(1);
      const bool training =
          node.has_input(2) &&
          !(node.input(2)->is_constant() && node.input(2)->constant->to_ints() == std::vector<int64_t>{0}) &&
          scalar(node.input(1)) != 0.0f;
      return !options.keep_dropout && !training && !(mask && (!mask->users.empty() || graph.is_output(mask)));
    }
    case OpKind::kCast:
      return node.input(0)->type.data_type == node.output()->type.data_type &&
             node.output()->type.data_type != ir::DataType::kUndefined;
    default:
      return false;
  }
}

}  // namespace

int remove_identity(Graph& graph, const RemoveIdentityOptions& options) {
  int removed = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();
    if (does_nothing(graph, *node, options)) removed += bypass(graph, node, node->input(0));
  }
  if (removed) graph.remove_dead();
  return removed;
}

}  // namespace octet::passes

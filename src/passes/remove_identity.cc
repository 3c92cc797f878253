#include "passes/remove_identity.h"

#include "ir/query.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

// The operand of `node` that is its result, as the other one is the number that changes nothing: x * 1, x / 1, x + 0,
// x - 0. nullptr for other nodes.
Value* unchanged_operand(const Node& node) {
  const bool product = node.kind == OpKind::kMul || node.kind == OpKind::kDiv;
  const bool either = node.kind == OpKind::kMul || node.kind == OpKind::kAdd;
  if (!product && node.kind != OpKind::kAdd && node.kind != OpKind::kSub) return nullptr;
  for (size_t i = either ? 0 : 1; i < 2; ++i) {
    const Value* number = node.input(i);
    Value* x = node.input(1 - i);
    if (!number->is_constant() || number->trainable || x->is_constant() ||
        number->type.data_type != x->type.data_type || ir::scalar(number) != (product ? 1.0f : 0.0f))
      continue;
    // Of more axes it would give x more.
    if (x->type.shape && number->type.shape->size() <= x->type.shape->size()) return x;
  }
  return nullptr;
}

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
    Value* x = does_nothing(graph, *node, options) ? node->input(0) : unchanged_operand(*node);
    if (x != nullptr) removed += bypass(graph, node, x);
  }
  if (removed) graph.remove_dead();
  return removed;
}

}  // namespace octet::passes

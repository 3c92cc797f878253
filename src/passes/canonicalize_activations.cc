#include "passes/canonicalize_activations.h"

#include <limits>
#include <optional>

#include "ir/query.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Value;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Limits {
  float low, high;
};

// Of Relu, and of Clip with constant limits (absent ones are infinite).
std::optional<Limits> limits_of(const Node* node) {
  if (!node) return std::nullopt;
  if (node->kind == OpKind::kRelu) return Limits{0, kInfinity};
  if (node->kind != OpKind::kClip) return std::nullopt;
  const auto limit = [&](size_t i, float absent) { return node->has_input(i) ? scalar(node->input(i)) : absent; };
  const std::optional<float> low = limit(1, -kInfinity), high = limit(2, kInfinity);
  if (!low || !high || !(*low <= *high)) return std::nullopt;
  return Limits{*low, *high};
}

// Clip(x, 0, high), the node's limits becoming `high` and a zero of the same type.
void make_clip(Graph& graph, Node* node, Value* x, Value* high) {
  Value* zero = graph.add_constant(graph.unique_name(node->name + "/min"), ir::Tensor::scalar<float>(0));
  Value* top = high;
  if (!high->constant->shape().empty())  // Clip wants scalars
    top = graph.add_constant(graph.unique_name(node->name + "/max"), ir::Tensor::scalar<float>(*scalar(high)));
  graph.set_input(node, 0, x);
  graph.set_input(node, 1, zero);
  graph.set_input(node, 2, top);
  node->attributes.clear();
  node->kind = OpKind::kClip;
}

// Max(x, 0) or Min(x, b) with two inputs: the other one, when the constant is a scalar.
struct Bound {
  Value* x;
  Value* limit;
};
std::optional<Bound> bound_of(const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    Value* x = node.input(1 - i);
    // Of no higher rank than x, so that nothing is broadcast.
    if (!scalar(node.input(i)) || x->is_constant() || !x->type.shape) continue;
    if (node.input(i)->constant->shape().size() <= x->type.shape->size()) return Bound{x, node.input(i)};
  }
  return std::nullopt;
}

bool rewrite(Graph& graph, Node* node) {
  if (node->output() && node->output()->type.data_type != ir::DataType::kFloat32) return false;
  if (node->kind == OpKind::kMax || node->kind == OpKind::kMin) {
    const auto bound = bound_of(*node);
    if (!bound) return false;
    const float limit = *scalar(bound->limit);
    if (node->kind == OpKind::kMax && limit == 0) {
      make_relu(graph, node, bound->x);
      return true;
    }
    Node* inner = bound->x->producer;
    if (node->kind == OpKind::kMin && limit > 0 && inner && inner->kind == OpKind::kRelu &&
        single_use(graph, bound->x)) {
      make_clip(graph, node, inner->input(0), bound->limit);
      graph.erase(inner);
      return true;
    }
    return false;
  }
  const std::optional<Limits> own = limits_of(node);
  if (!own) return false;
  Node* inner = node->input(0)->producer;
  const std::optional<Limits> below = limits_of(inner);
  if (node->kind == OpKind::kRelu) return below && below->low >= 0 && bypass(graph, node, node->input(0));
  if (own->low == 0 && own->high == kInfinity) {
    make_relu(graph, node, node->input(0));
    return true;
  }
  if (inner && inner->kind == OpKind::kRelu && own->low <= 0 && own->high > 0 && own->high < kInfinity &&
      single_use(graph, node->input(0))) {
    make_clip(graph, node, inner->input(0), node->input(2));
    graph.erase(inner);
    return true;
  }
  return false;
}

}  // namespace

int canonicalize_activations(Graph& graph) {
  int changed = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();  // only this node or earlier ones are erased
    changed += rewrite(graph, node);
  }
  if (changed) graph.remove_dead();
  return changed;
}

}  // namespace octet::passes

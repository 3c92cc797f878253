#include "onnx/fuse_layer_norm.h"

#include <algorithm>

#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"

namespace octet::onnx {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Value;

// The node that makes the value, where it is one of this kind.
const Node* made_by(const Value* value, OpKind kind) {
  return value && value->producer && value->producer->kind == kind ? value->producer : nullptr;
}

bool is_number(const Value* value, float number) {
  const auto scalar = ir::scalar(value);
  return scalar && *scalar == number;
}

// The operand of a commutative node that is not a constant of one element, and that constant.
struct WithNumber {
  const Value* value;
  float number;
};
std::optional<WithNumber> with_number(const Node& node) {
  for (size_t i = 0; i < 2; ++i)
    if (const auto number = ir::scalar(node.input(i))) return WithNumber{node.input(1 - i), *number};
  return std::nullopt;
}

// What a mean over the last axes, which it keeps, is taken of, and the first of these axes.
struct Mean {
  const Value* of;
  size_t axis;
};
std::optional<Mean> mean_of_lines(const Value* value) {
  const Node* node = made_by(value, OpKind::kReduceMean);
  if (!node || node->get_int("keepdims", 1) != 1 || !node->input(0)->type.shape) return std::nullopt;
  const size_t rank = node->input(0)->type.shape->size();
  std::vector<int64_t> axes = node->get_ints("axes");
  if (node->has_input(1)) {
    if (!node->input(1)->is_constant()) return std::nullopt;
    axes = node->input(1)->constant->to_ints();
  }
  if (axes.empty()) return std::nullopt;
  std::vector<size_t> normal = ir::normal_axes(*node, axes, rank);
  std::sort(normal.begin(), normal.end());
  if (normal.back() + 1 != rank || normal.back() - normal.front() + 1 != normal.size()) return std::nullopt;
  return Mean{node->input(0), normal.front()};
}

// x of x - mean(x).
struct Centered {
  Value* x;
  size_t axis;
};
std::optional<Centered> centered(const Value* value) {
  const Node* sub = made_by(value, OpKind::kSub);
  if (!sub) return std::nullopt;
  const auto mean = mean_of_lines(sub->input(1));
  if (!mean || mean->of != sub->input(0)) return std::nullopt;
  return Centered{sub->input(0), mean->axis};
}

// v of v * v or v^2.
const Value* root_of_square(const Value* value) {
  if (const Node* mul = made_by(value, OpKind::kMul)) return mul->input(0) == mul->input(1) ? mul->input(0) : nullptr;
  const Node* pow = made_by(value, OpKind::kPow);
  return pow && is_number(pow->input(1), 2) ? pow->input(0) : nullptr;
}

const Value* square_of_root(const Value* value) {
  if (const Node* sqrt = made_by(value, OpKind::kSqrt)) return sqrt->input(0);
  const Node* pow = made_by(value, OpKind::kPow);
  return pow && is_number(pow->input(1), 0.5f) ? pow->input(0) : nullptr;
}

struct Normalized {
  Value* x;
  size_t axis;
  float epsilon;
};
std::optional<Normalized> normalized(const Node& div) {
  const auto lines = centered(div.input(0));
  const Value* sum = lines ? square_of_root(div.input(1)) : nullptr;
  const Node* add = made_by(sum, OpKind::kAdd);
  const auto variance = add ? with_number(*add) : std::nullopt;
  const auto mean = variance ? mean_of_lines(variance->value) : std::nullopt;
  if (!mean || mean->axis != lines->axis) return std::nullopt;
  const auto again = centered(root_of_square(mean->of));  // some exporters write it twice
  if (!again || again->x != lines->x || again->axis != lines->axis) return std::nullopt;
  return Normalized{lines->x, lines->axis, variance->number};
}

// The constant that the node, reading `value` once, combines it with, if it has this shape.
Value* parameter(const Node* node, const Value* value, const Shape& shape) {
  Value* other = node->input(0) == value ? node->input(1) : node->input(0);
  return other->is_constant() && other->type.data_type == ir::DataType::kFloat32 && *other->type.shape == shape
             ? other
             : nullptr;
}

bool fuse(ir::Graph& graph, const Node& div) {
  const auto found = normalized(div);
  if (!found || found->x->type.data_type != ir::DataType::kFloat32) return false;
  const Shape shape(found->x->type.shape->begin() + static_cast<int64_t>(found->axis), found->x->type.shape->end());
  Node* last = ir::only_reader(graph, div.output());
  Value* scale = last && last->kind == OpKind::kMul ? parameter(last, div.output(), shape) : nullptr;
  if (!scale) return false;
  Value* shift = nullptr;
  Node* add = ir::only_reader(graph, last->output());
  if (add && add->kind == OpKind::kAdd) shift = parameter(add, last->output(), shape);
  if (shift) last = add;
  graph.set_input(last, 0, found->x);
  graph.set_input(last, 1, scale);
  if (shift) {
    last->inputs.push_back(nullptr);
    graph.set_input(last, 2, shift);
  }
  last->kind = OpKind::kLayerNormalization;
  last->attributes = {{"axis", -static_cast<int64_t>(shape.size())}, {"epsilon", found->epsilon}};
  ir::infer_node(*last);
  return true;
}

}  // namespace

int fuse_layer_norm(ir::Graph& graph) {
  int count = 0;
  for (const Node* node : ir::node_list(graph))
    if (node->kind == OpKind::kDiv) count += fuse(graph, *node);
  return count;
}

}  // namespace octet::onnx

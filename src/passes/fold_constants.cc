#include "passes/fold_constants.h"

#include <algorithm>
#include <optional>

#include "ir/evaluate.h"
#include "ir/query.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ir::Value;

bool is_arithmetic(OpKind kind) {
  return kind == OpKind::kAdd || kind == OpKind::kSub || kind == OpKind::kMul || kind == OpKind::kDiv;
}

// One parameter gives one parameter of as many elements, whose training is the same but for its sign.
bool keeps_parameter(const Node& node) {
  return node.info().has(ir::trait::kReshapes) || node.kind == OpKind::kTranspose || node.kind == OpKind::kIdentity ||
         node.kind == OpKind::kNeg || node.kind == OpKind::kCast;
}

bool fold_constant_node(Graph& graph, Node* node) {
  const bool cheap =
      node->info().has(ir::trait::kElementwise) || node->info().has(ir::trait::kMoves) || node->kind == OpKind::kCast;
  if (!cheap || node->outputs.size() != 1 || graph.is_output(node->output())) return false;
  const ir::TensorType& type = node->output()->type;
  if (type.data_type != ir::DataType::kFloat32 || !type.shape || !ir::is_static(*type.shape)) return false;
  std::vector<const Tensor*> inputs;
  for (const Value* v : node->inputs) {
    if (v && (!v->is_constant() || (v->trainable && !keeps_parameter(*node)))) return false;
    inputs.push_back(v ? &*v->constant : nullptr);
  }
  ir::MemoryBudget budget;
  const auto values = ir::evaluate(*node, inputs, budget);
  if (!values) return false;
  const std::string name = graph.unique_name(node->output()->name + "/constant");
  supersede(graph, node->output(), graph.add_constant(name, values->front(), node->input(0)->trainable));
  return true;
}

// A constant operand as one number for each of `channels` along axis 1 of a tensor of `rank` dimensions.
std::optional<std::vector<double>> per_channel(const Value& constant, int64_t channels, size_t rank) {
  if (constant.type.data_type != ir::DataType::kFloat32) return std::nullopt;
  const Shape& shape = constant.constant->shape();
  const auto values = constant.constant->values<float>();
  if (shape.size() > rank) return std::nullopt;
  if (values.size() == 1) return std::vector<double>(static_cast<size_t>(channels), values[0]);
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && rank - shape.size() + d != 1) return std::nullopt;
  if (static_cast<int64_t>(values.size()) != channels) return std::nullopt;
  return std::vector<double>(values.begin(), values.end());
}

std::optional<ChannelAffine> affine_of(const Node& node, size_t constant, int64_t channels, size_t rank) {
  const auto operand = per_channel(*node.input(constant), channels, rank);
  if (!operand) return std::nullopt;
  const size_t n = operand->size();
  ChannelAffine a{std::vector<double>(n, 1.0), std::vector<double>(n, 0.0), std::vector<double>(n, 0.0)};
  for (size_t c = 0; c < n; ++c) {
    const double v = (*operand)[c];
    switch (node.kind) {
      case OpKind::kAdd:
        a.shift[c] = v;
        break;
      case OpKind::kSub:
        a.shift[c] = constant == 1 ? -v : v;
        if (constant == 0) a.scale[c] = -1;
        break;
      case OpKind::kMul:
        a.scale[c] = v;
        break;
      default:
        if (constant == 0 || v == 0) return std::nullopt;
        a.scale[c] = 1 / v;
    }
  }
  return a;
}

// y = arithmetic(layer(x), constant) -> y = layer'(x).
bool fold_into_layer(Graph& graph, Node* node) {
  if (!is_arithmetic(node->kind)) return false;
  const size_t constant = node->input(1)->is_constant() ? 1 : 0;
  Value* y = node->input(1 - constant);
  if (!node->input(constant)->is_constant() || !y->producer || !single_use(graph, y)) return false;
  if (!y->type.shape || y->type.shape->size() < 2 || (*y->type.shape)[1] == ir::kDynamic) return false;
  const int64_t channels = (*y->type.shape)[1];
  if (!can_fold_affine(*y->producer, channels)) return false;
  const auto affine = affine_of(*node, constant, channels, y->type.shape->size());
  if (!affine) return false;
  fold_affine(graph, y->producer, *affine, node->input(constant)->trainable,
              str(node->info().name, " '", node->name, "'"));
  supersede(graph, node->output(), y);
  return true;
}

// MatMul(x, weights) + constant vector -> Gemm; the MatMul keeps its name.
bool matmul_to_gemm(Graph& graph, Node* node) {
  if (node->kind != OpKind::kAdd) return false;
  for (size_t i = 0; i < 2; ++i) {
    Value *y = node->input(i), *bias = node->input(1 - i);
    Node* product = y->producer;
    if (!product || product->kind != OpKind::kMatMul || !single_use(graph, y)) continue;
    const Value* w = product->input(1);
    if (!w->is_constant() || !bias->is_constant() || w->constant->shape().size() != 2) continue;
    if (!product->input(0)->type.shape || product->input(0)->type.shape->size() != 2) continue;
    if (bias->constant->shape() != Shape{w->constant->shape()[1]}) continue;
    take_bias(graph, product, node, bias);
    return true;
  }
  return false;
}

}  // namespace

int fold_constants(Graph& graph) {
  int folded = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();
    folded += fold_constant_node(graph, node) || fold_into_layer(graph, node) || matmul_to_gemm(graph, node);
  }
  if (folded) graph.remove_dead();
  return folded;
}

}  // namespace octet::passes

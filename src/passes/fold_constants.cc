#include "passes/fold_constants.h"

#include <algorithm>

#include "ir/evaluate.h"
#include "ir/query.h"
#include "passes/channel_arithmetic.h"
#include "passes/rewrite.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ir::Value;

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
    folded += fold_constant_node(graph, node) || matmul_to_gemm(graph, node) || fold_channel_arithmetic(graph, node);
  }
  if (folded) graph.remove_dead();
  return folded;
}

}  // namespace octet::passes

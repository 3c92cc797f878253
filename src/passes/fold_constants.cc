#include "passes/fold_constants.h"

#include <algorithm>
#include <optional>

#include "ir/axes.h"
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

// Row-major steps of `shape` seen as one of `rank` dimensions; 0 where it is broadcast.
std::vector<int64_t> broadcast_strides(const Shape& shape, size_t rank) {
  std::vector<int64_t> strides(rank, 0);
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1) strides[rank - shape.size() + d] = step;
    step *= shape[d];
  }
  return strides;
}

// Calls visit(offset a, offset b) for every element of `out` in row-major order.
template <typename Visit>
void for_each_element(const Shape& out, const std::vector<int64_t>& a, const std::vector<int64_t>& b, Visit&& visit) {
  std::vector<int64_t> index(out.size(), 0);
  int64_t at = 0, bt = 0;
  const int64_t n = ir::element_count(out);
  for (int64_t i = 0; i < n; ++i) {
    visit(at, bt);
    for (size_t d = out.size(); d-- > 0;) {
      at += a[d];
      bt += b[d];
      if (++index[d] < out[d]) break;
      at -= a[d] * out[d];
      bt -= b[d] * out[d];
      index[d] = 0;
    }
  }
}

float apply(OpKind kind, float a, float b) {
  switch (kind) {
    case OpKind::kAdd:
      return a + b;
    case OpKind::kSub:
      return a - b;
    case OpKind::kMul:
      return a * b;
    default:
      return a / b;
  }
}

bool is_arithmetic(OpKind kind) {
  return kind == OpKind::kAdd || kind == OpKind::kSub || kind == OpKind::kMul || kind == OpKind::kDiv;
}

Tensor evaluate_arithmetic(const Node& node, const Shape& shape) {
  const Tensor &a = *node.input(0)->constant, &b = *node.input(1)->constant;
  const auto x = a.values<float>(), y = b.values<float>();
  std::vector<float> out;
  out.reserve(static_cast<size_t>(ir::element_count(shape)));
  for_each_element(shape, broadcast_strides(a.shape(), shape.size()), broadcast_strides(b.shape(), shape.size()),
                   [&](int64_t i, int64_t j) {
                     out.push_back(apply(node.kind, x[static_cast<size_t>(i)], y[static_cast<size_t>(j)]));
                   });
  return Tensor::of<float>(shape, out);
}

Tensor evaluate_transpose(const Node& node, const Shape& shape) {
  const Tensor& a = *node.input(0)->constant;
  const auto x = a.values<float>();
  const std::vector<int64_t> perm = ir::permutation_of(node, shape.size());
  std::vector<int64_t> steps(shape.size(), 1), strides(shape.size());
  for (size_t d = a.shape().size(); d-- > 1;) steps[d - 1] = steps[d] * a.shape()[d];
  for (size_t d = 0; d < shape.size(); ++d) strides[d] = steps[static_cast<size_t>(perm[d])];
  std::vector<float> out;
  out.reserve(x.size());
  for_each_element(shape, strides, strides, [&](int64_t i, int64_t) { out.push_back(x[static_cast<size_t>(i)]); });
  return Tensor::of<float>(shape, out);
}

// The value of a node whose inputs are all constant.
std::optional<Tensor> evaluate(const Node& node) {
  if (node.outputs.size() != 1 || !node.output() || node.inputs.empty()) return std::nullopt;
  const ir::TensorType& type = node.output()->type;
  if (type.data_type != ir::DataType::kFloat32 || !type.shape || !ir::is_static(*type.shape)) return std::nullopt;
  for (const Value* v : node.inputs)
    if (v && !v->is_constant()) return std::nullopt;
  const bool floats = node.input(0)->type.data_type == ir::DataType::kFloat32;
  if (is_arithmetic(node.kind)) return evaluate_arithmetic(node, *type.shape);
  switch (node.kind) {
    case OpKind::kTranspose:
      if (!floats) return std::nullopt;
      return evaluate_transpose(node, *type.shape);
    case OpKind::kNeg: {
      std::vector<float> values = node.input(0)->constant->to_floats();
      for (float& v : values) v = -v;
      return Tensor::of<float>(*type.shape, values);
    }
    case OpKind::kCast:
    case OpKind::kIdentity:
    case OpKind::kReshape:
    case OpKind::kSqueeze:
    case OpKind::kUnsqueeze:
      return Tensor::of<float>(*type.shape, node.input(0)->constant->to_floats());
    default:
      return std::nullopt;
  }
}

// The product of two trainable constants is not one trainable constant: training would differ.
bool merges_parameters(const Node& node) {
  int trainable = 0;
  for (const Value* v : node.inputs) trainable += v && v->trainable;
  return trainable > 1 || (trainable == 1 && is_arithmetic(node.kind));
}

bool fold_constant_node(Graph& graph, Node* node) {
  if (graph.is_output(node->output()) || merges_parameters(*node)) return false;
  std::optional<Tensor> value = evaluate(*node);
  if (!value) return false;
  const std::string name = graph.unique_name(node->output()->name + "/constant");
  supersede(graph, node->output(), graph.add_constant(name, std::move(*value), node->input(0)->trainable));
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

#include "passes/fold_batch_norm.h"

#include <cmath>

#include "quant/fusion_model.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

// The per-channel affine function that the normalisation is.
struct Affine {
  std::vector<double> scale, mean, offset;
};

Affine affine_of(const Node& bn) {
  const std::vector<float> gamma = bn.input(1)->constant->to_floats(), beta = bn.input(2)->constant->to_floats(),
                           mean = bn.input(3)->constant->to_floats(), variance = bn.input(4)->constant->to_floats();
  const double epsilon = bn.get_float("epsilon");
  Affine a;
  for (size_t c = 0; c < gamma.size(); c++) {
    a.scale.push_back(static_cast<double>(gamma[c]) / std::sqrt(static_cast<double>(variance[c]) + epsilon));
    a.mean.push_back(mean[c]);
    a.offset.push_back(beta[c]);
  }
  return a;
}

// Rank-1 bias, or nothing; a bias of another shape (Gemm broadcasts) has to be per channel.
bool has_foldable_bias(const Node& node, size_t channels) {
  if (!node.has_input(2)) return true;
  if (!node.input(2)->is_constant()) return false;
  return node.input(2)->constant->shape() == ir::Shape{static_cast<int64_t>(channels)};
}

bool can_fold(const Graph& graph, const Node& bn) {
  if (bn.kind != OpKind::kBatchNormalization || bn.get_int("training_mode") != 0) return false;
  for (size_t i = 1; i < 5; i++)
    if (!bn.input(i)->is_constant()) return false;
  for (size_t i = 1; i < bn.outputs.size(); i++)
    if (bn.output(i) && (!bn.output(i)->users.empty() || graph.is_output(bn.output(i)))) return false;
  const Value* x = bn.input(0);
  const Node* node = x->producer;
  if (!node || x->users.size() != 1 || graph.is_output(x)) return false;
  if (node->kind != OpKind::kConv && node->kind != OpKind::kConvTranspose && node->kind != OpKind::kGemm) return false;
  if (!node->input(1)->is_constant() || node->input(1)->type.data_type != ir::DataType::kFloat32) return false;
  // alpha * (x w) is scaled as a whole; a bias that beta scales would need another rule.
  if (node->kind == OpKind::kGemm && node->get_float("beta") != 1.0f) return false;
  return has_foldable_bias(*node, static_cast<size_t>(bn.input(1)->constant->size()));
}

// Multiplies every weight by the scale of its output channel.
Tensor scaled_weights(const Node& node, const Affine& a) {
  const Tensor& w = *node.input(1)->constant;
  const auto values = w.values<float>();
  const auto& shape = w.shape();
  const int axis = *quant::weight_axis(node);
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); d++) inner *= shape[d];
  const int64_t size = shape[static_cast<size_t>(axis)];
  // ConvTranspose with groups: the input channels (axis 0) of group g make outputs g * size .. (g + 1) * size - 1.
  const int64_t groups = node.kind == OpKind::kConvTranspose ? node.get_int("group") : 1;
  const int64_t per_group = axis == 0 ? 1 : shape[0] / groups;
  std::vector<float> out(values.size());
  for (size_t i = 0; i < values.size(); i++) {
    const int64_t outer = static_cast<int64_t>(i) / inner / size, along = static_cast<int64_t>(i) / inner % size;
    const int64_t group = groups > 1 ? outer / per_group : 0;
    out[i] = static_cast<float>(values[i] * a.scale[static_cast<size_t>(group * size + along)]);
  }
  return Tensor::of<float>(shape, out);
}

Tensor folded_bias(const Node& node, const Affine& a) {
  const std::vector<float> old = node.has_input(2) ? node.input(2)->constant->to_floats() : std::vector<float>();
  std::vector<float> out(a.scale.size());
  for (size_t c = 0; c < out.size(); c++) {
    const double b = old.empty() ? 0.0 : old[c];
    out[c] = static_cast<float>((b - a.mean[c]) * a.scale[c] + a.offset[c]);
  }
  return Tensor::of<float>({static_cast<int64_t>(out.size())}, out);
}

void require_finite(const Tensor& tensor, const Node& node, const Node& bn) {
  for (const float v : tensor.values<float>())
    require(std::isfinite(v), "folding BatchNormalization '", bn.name, "' into ", node.info().name, " '", node.name,
            "' gives weights that are not finite; its statistics are damaged (negative variance?)");
}

std::string bias_name(const Graph& graph, const Value* weight) {
  const std::string suffix = "weight";
  std::string stem = weight->name;
  if (stem.size() > suffix.size() && stem.ends_with(suffix) && stem[stem.size() - suffix.size() - 1] == '.')
    stem.resize(stem.size() - suffix.size() - 1);
  return graph.unique_name(stem + ".bias");
}

// Gives the node's input `index` the new tensor: in place when nobody else uses the constant.
void replace_constant(Graph& graph, Node* node, size_t index, Tensor tensor) {
  Value* value = node->input(index);
  if (value->users.size() == 1 && !graph.is_output(value)) {
    value->type = {tensor.data_type(), tensor.shape()};
    value->constant = std::move(tensor);
    return;
  }
  Value* copy = graph.add_constant(graph.unique_name(value->name + "/folded"), std::move(tensor), value->trainable);
  graph.set_input(node, index, copy);
}

void fold(Graph& graph, Node* node, Node* bn) {
  const Affine a = affine_of(*bn);
  Tensor weights = scaled_weights(*node, a), bias = folded_bias(*node, a);
  require_finite(weights, *node, *bn);
  require_finite(bias, *node, *bn);
  const bool trainable = bn->input(2)->trainable;
  replace_constant(graph, node, 1, std::move(weights));
  if (node->has_input(2))
    replace_constant(graph, node, 2, std::move(bias));
  else
    graph.set_input(node, 2, graph.add_constant(bias_name(graph, node->input(1)), std::move(bias), trainable));
  Value* before = node->output();
  Value* after = bn->output();
  const std::string name = after->name;
  graph.replace_uses(after, before);
  graph.erase(bn);
  graph.rename(before, name);
}

}  // namespace

int fold_batch_norm(Graph& graph) {
  int folded = 0;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    Node* node = (it++)->get();  // first, because folding erases the node
    if (!can_fold(graph, *node)) continue;
    fold(graph, node->input(0)->producer, node);
    folded++;
  }
  graph.remove_dead();
  return folded;
}

}  // namespace octet::passes

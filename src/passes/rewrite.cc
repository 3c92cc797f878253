#include "passes/rewrite.h"

#include <algorithm>
#include <cmath>

#include "ir/axes.h"
#include "ir/query.h"
#include "quant/fusion_model.h"

namespace octet::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

// The quantizer of the weights, or nullptr.
Node* weight_quantizer(const Node& node) {
  Node* q = node.input(1)->producer;
  return ir::is_quantizer(q) ? q : nullptr;
}

// Multiplies every weight by the scale of its output channel.
Tensor scaled_weights(const Node& node, const std::vector<double>& scale) {
  const Tensor& w = *ir::constant_behind(node.input(1))->constant;
  const auto values = w.values<float>();
  const auto& shape = w.shape();
  const int axis = *quant::weight_axis(node);
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t size = shape[static_cast<size_t>(axis)];
  // ConvTranspose with groups: the input channels (axis 0) of group g make outputs g * size .. (g + 1) * size - 1.
  const int64_t groups = node.kind == OpKind::kConvTranspose ? node.get_int("group") : 1;
  const int64_t per_group = axis == 0 ? 1 : shape[0] / groups;
  std::vector<float> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t outer = static_cast<int64_t>(i) / inner / size, along = static_cast<int64_t>(i) / inner % size;
    const int64_t group = groups > 1 ? outer / per_group : 0;
    out[i] = static_cast<float>(values[i] * scale[static_cast<size_t>(group * size + along)]);
  }
  return Tensor::of<float>(shape, out);
}

// Of two axes each, as a Gemm.
bool multiplies_matrices(const Node& node) {
  const Value* x = node.input(0);
  return x->type.shape && x->type.shape->size() == 2;
}

Tensor folded_bias(const Node& node, const ChannelAffine& a) {
  const std::vector<float> old = node.has_input(2) ? node.input(2)->constant->to_floats() : std::vector<float>();
  std::vector<float> out(a.scale.size());
  for (size_t c = 0; c < out.size(); ++c) {
    const double b = old.empty() ? 0.0 : old[c];
    out[c] = static_cast<float>((b - a.center[c]) * a.scale[c] + a.shift[c]);
  }
  return Tensor::of<float>({static_cast<int64_t>(out.size())}, out);
}

void require_finite(const Tensor& tensor, const Node& node, const std::string& what) {
  for (const float v : tensor.values<float>())
    require(std::isfinite(v), "folding ", what, " into ", node.info().name, " '", node.name,
            "' gives weights that are not finite; its constants are damaged (negative variance?)");
}

std::string bias_name(const Graph& graph, const Value* weight) {
  const std::string suffix = ".weight";
  std::string stem = weight->name;
  if (stem.size() > suffix.size() && stem.ends_with(suffix)) stem.resize(stem.size() - suffix.size());
  return graph.unique_name(stem + ".bias");
}

// Gives the node's input `index` the new tensor: in place when nobody else uses the constant.
void replace_constant(Graph& graph, Node* node, size_t index, Tensor tensor) {
  Value* value = node->input(index);
  if (single_use(graph, value)) {
    value->type = {tensor.data_type(), tensor.shape()};
    value->constant = std::move(tensor);
    return;
  }
  Value* copy = graph.add_constant(graph.unique_name(value->name + "/folded"), std::move(tensor), value->trainable);
  graph.set_input(node, index, copy);
}

// Codes -n .. n around 0 of weights that nobody else reads, so that a channel may change its scale and its sign.
bool may_rescale(const Node& quantizer, const Node& node) {
  const Value *weights = quantizer.input(0), *scale = quantizer.input(1);
  if (quantizer.output()->users.size() != 1 || weights->users.size() != 1 || scale->users.size() != 1) return false;
  if (node.kind == OpKind::kConvTranspose && node.get_int("group") != 1) return false;  // scales are those of a group
  if (quantizer.get_int("qmin") != -quantizer.get_int("qmax")) return false;
  const std::vector<int64_t> zeros = quantizer.input(2)->constant->to_ints();
  if (std::any_of(zeros.begin(), zeros.end(), [](int64_t z) { return z != 0; })) return false;
  const size_t rank = weights->constant->shape().size();
  return scale->constant->shape().empty() ||
         ir::normal_axis(quantizer, quantizer.get_int("axis"), rank) == static_cast<size_t>(*quant::weight_axis(node));
}

// One scale for each channel, which has grown by what its weights are multiplied by.
void rescale(Graph& graph, Node* quantizer, const Node& node, const std::vector<double>& factors) {
  const std::vector<float> old = quantizer->input(1)->constant->to_floats();
  std::vector<float> scales(factors.size());
  for (size_t c = 0; c < scales.size(); ++c) {
    const float before = old.size() == 1 ? old[0] : old[c];
    // Weights that become 0 are 0 at any scale.
    scales[c] = factors[c] == 0 ? before : static_cast<float>(before * std::abs(factors[c]));
  }
  const ir::Shape shape = {static_cast<int64_t>(scales.size())};
  if (quantizer->input(1)->constant->shape().empty()) {
    Value* zeros = quantizer->input(2);
    graph.set_input(quantizer, 2,
                    graph.add_constant(graph.unique_name(zeros->name + "/folded"),
                                       Tensor::of<int8_t>(shape, std::vector<int8_t>(scales.size(), 0))));
    quantizer->attributes["axis"] = int64_t{*quant::weight_axis(node)};
  }
  graph.set_constant(quantizer->input(1), Tensor::of<float>(shape, scales));
}

}  // namespace

void supersede(Graph& graph, Value* from, Value* to) {
  const std::string name = from->name;
  Node* producer = from->producer;
  graph.replace_uses(from, to);
  graph.erase(producer);
  graph.rename(to, name);
}

void make_relu(Graph& graph, Node* node, Value* x) {
  graph.set_input(node, 0, x);
  for (size_t i = 1; i < node->inputs.size(); ++i) graph.set_input(node, i, nullptr);
  node->inputs.resize(1);
  node->attributes.clear();
  node->kind = OpKind::kRelu;
}

void take_bias(Graph& graph, Node* layer, Node* add, Value* bias) {
  if (layer->kind == OpKind::kMatMul) layer->kind = OpKind::kGemm;
  graph.set_input(layer, 2, bias);
  supersede(graph, add->output(), layer->output());
}

bool bypass(Graph& graph, Node* node, Value* replacement) {
  Value* old = node->output();
  if (graph.is_output(old)) {
    if (replacement->is_constant() || !replacement->producer || graph.is_output(replacement)) return false;
    supersede(graph, old, replacement);
    return true;
  }
  graph.replace_uses(old, replacement);
  graph.erase(node);
  return true;
}

bool ChannelAffine::moves() const {
  const auto is_zero = [](double v) { return v == 0; };
  return !std::all_of(center.begin(), center.end(), is_zero) || !std::all_of(shift.begin(), shift.end(), is_zero);
}

bool can_fold_affine(const Node& node, int64_t channels, bool moves) {
  if (node.kind == OpKind::kMatMul) {
    if (moves && !multiplies_matrices(node)) return false;
    const Value* w = ir::constant_behind(node.input(1));
    if (node.input(0)->is_constant() || !w || w->constant->shape().size() != 2) return false;
  } else if (node.kind != OpKind::kConv && node.kind != OpKind::kConvTranspose && node.kind != OpKind::kGemm) {
    return false;
  }
  const Node* quantizer = weight_quantizer(node);
  const Value* w = quantizer ? quantizer->input(0) : node.input(1);
  if (!w->is_constant() || w->type.data_type != ir::DataType::kFloat32) return false;
  if (quantizer && !may_rescale(*quantizer, node)) return false;
  const int axis = *quant::weight_axis(node);
  const int64_t groups = node.kind == OpKind::kConvTranspose ? node.get_int("group") : 1;
  if (w->constant->shape().at(static_cast<size_t>(axis)) * groups != channels) return false;
  // alpha * (x w) is scaled as a whole; a bias that beta scales would need another rule.
  if (node.kind == OpKind::kGemm && node.get_float("beta") != 1.0f) return false;
  if (!node.has_input(2)) return true;
  return node.input(2)->is_constant() && node.input(2)->type.data_type == ir::DataType::kFloat32 &&
         node.input(2)->constant->shape() == ir::Shape{channels};
}

void fold_affine(Graph& graph, Node* node, const ChannelAffine& affine, bool trainable_bias, const std::string& what) {
  const bool scales = std::any_of(affine.scale.begin(), affine.scale.end(), [](double s) { return s != 1.0; });
  Tensor bias = folded_bias(*node, affine);
  require_finite(bias, *node, what);
  if (scales) {
    Tensor weights = scaled_weights(*node, affine.scale);
    require_finite(weights, *node, what);
    if (Node* quantizer = weight_quantizer(*node)) {
      rescale(graph, quantizer, *node, affine.scale);
      graph.set_constant(quantizer->input(0), std::move(weights));
    } else {
      replace_constant(graph, node, 1, std::move(weights));
    }
  }
  if (node->kind == OpKind::kMatMul) {
    if (!affine.moves()) return;
    node->kind = OpKind::kGemm;
  }
  if (node->has_input(2))
    replace_constant(graph, node, 2, std::move(bias));
  else
    graph.set_input(
        node, 2,
        graph.add_constant(bias_name(graph, ir::constant_behind(node->input(1))), std::move(bias), trainable_bias));
}

}  // namespace octet::passes

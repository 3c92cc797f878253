#include "train/weight_rounding.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "ir/axes.h"
#include "ir/infer.h"
#include "ir/query.h"
#include "train/constants.h"
#include "train/layer_examples.h"
#include "train/ops_common.h"

namespace octet::train {
namespace {

WeightGrid grid_of(const ir::Node& quantizer) {
  const at::Tensor w = to_torch(*quantizer.input(0)->constant).to(at::kFloat);
  const int64_t axis = quantizer.input(1)->constant->size() > 1
                           ? static_cast<int64_t>(ir::normal_axis(quantizer, quantizer.get_int("axis"), w.dim()))
                           : -1;
  const auto broadcast = [&](const ir::Value* value) {
    return along_axis(to_torch(*value->constant).to(at::kFloat).reshape({-1}), axis, w.dim());
  };
  const at::Tensor zero = broadcast(quantizer.input(2));
  return {.weights = w,
          .scale = broadcast(quantizer.input(1)),
          .lowest = static_cast<double>(quantizer.get_int("qmin")) - zero,
          .highest = static_cast<double>(quantizer.get_int("qmax")) - zero};
}

RoundedLayer round_layer(const ir::Node& node, const RoundLayer& round, LayerExamples& examples) {
  const ir::Node& q = *node.input(1)->producer;
  ir::Value* weight = q.input(0);
  const WeightGrid grid = grid_of(q);
  const Rounding found = round(node, grid, examples);
  const at::NoGradGuard no_grad;
  RoundedLayer out{.node = node.name,
                   .weight = weight->name,
                   .weights = grid.weights.numel(),
                   .nearest = found.nearest,
                   .rounded = found.nearest};
  at::Tensor codes = grid.nearest();
  if (found.codes.defined() && found.chosen < found.nearest) {
    out.rounded = found.chosen;
    out.moved = at::ne(found.codes, codes).sum().item<int64_t>();
    codes = found.codes;
  }
  weight->constant = to_constant((codes * grid.scale).contiguous());
  return out;
}

}  // namespace

bool rounds_by_results(const ir::Node& node) {
  const bool weighted = node.kind == ir::OpKind::kConv || node.kind == ir::OpKind::kConvTranspose ||
                        node.kind == ir::OpKind::kGemm || node.kind == ir::OpKind::kMatMul;
  const ir::Node* q = weighted && node.has_input(1) ? node.input(1)->producer : nullptr;
  return q && ir::is_quantizer(q) && q->input(0)->is_constant() && q->input(0)->users.size() == 1 &&
         (!node.has_input(2) || node.input(2)->is_constant());
}

at::Tensor WeightGrid::clamped(const at::Tensor& codes) const {
  return at::minimum(at::maximum(codes, lowest), highest);
}

at::Tensor WeightGrid::nearest() const {
  return clamped(at::round(weights / scale));
}

std::vector<RoundedLayer> round_layers(ir::Graph& graph, data::Loader& loader, int64_t images, const RoundLayer& round,
                                       const std::function<void(const RoundedLayer&)>& progress) {
  LayerExamples examples(graph, loader, images);
  std::vector<RoundedLayer> out;
  for (const auto& node : graph.nodes()) {
    if (!rounds_by_results(*node)) continue;
    out.push_back(round_layer(*node, round, examples));
    if (progress) progress(out.back());
  }
  return out;
}

ir::Graph layer_graph(const ir::Node& node) {
  ir::Graph g;
  g.name = node.name;
  std::vector<ir::Value*> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Value* value = node.inputs[i];
    if (value == nullptr) {
      inputs.push_back(nullptr);
    } else if (value->is_constant()) {
      inputs.push_back(g.add_constant(value->name, *value->constant));
    } else if (i == 0) {
      ir::TensorType type = value->type;
      if (type.shape && !type.shape->empty()) type.shape->at(0) = ir::kDynamic;
      inputs.push_back(g.add_input(value->name, type));
    } else {
      const ir::Node& q = *value->producer;
      std::vector<ir::Value*> of_quantizer;
      for (const ir::Value* each : q.inputs) of_quantizer.push_back(g.add_constant(each->name, *each->constant));
      inputs.push_back(g.add_node(q.kind, q.name, of_quantizer, {value->name}, q.attributes)->output());
    }
  }
  g.add_output(g.add_node(node.kind, node.name, inputs, {node.output()->name}, node.attributes)->output());
  ir::infer_shapes(g);
  return g;
}

}  // namespace octet::train

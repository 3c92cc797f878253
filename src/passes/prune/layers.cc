#include "passes/prune/layers.h"

#include <algorithm>
#include <cmath>

#include "ir/query.h"
#include "quant/fusion_model.h"

namespace octet::passes {

using ir::Node;
using ir::OpKind;
using ir::Value;

OCTET_ENUM_NAMES(PruneNormalizer, {PruneNormalizer::kMax, "max"}, {PruneNormalizer::kL2, "L2"})
OCTET_ENUM_NAMES(PruneEqualizer, {PruneEqualizer::kUnion, "union"}, {PruneEqualizer::kIntersection, "intersection"},
                 {PruneEqualizer::kArithmeticMean, "arithmetic_mean"},
                 {PruneEqualizer::kGeometricMean, "geometric_mean"})
OCTET_ENUM_NAMES(PruneCriterion, {PruneCriterion::kL1, "L1"}, {PruneCriterion::kL2, "L2"},
                 {PruneCriterion::kBatchNormScale, "bn_scale"})

namespace {

// Where the channels are in the output: behind the batch, or last of what a MatMul makes.
size_t channel_axis(const Node& layer, const ir::IndexTies& ties) {
  return layer.kind == OpKind::kMatMul ? ties.rank(layer.output()) - 1 : 1;
}

// |w| or |w|^2 of every filter, summed.
std::vector<double> sums(const Node& layer, size_t filters, bool squares) {
  const ir::Tensor& w = *layer.input(1)->constant;
  const auto axis = static_cast<size_t>(*quant::weight_axis(layer));
  const auto size = static_cast<size_t>(w.shape()[axis]), rows = static_cast<size_t>(w.shape()[0]);
  size_t inner = 1;
  for (size_t d = axis + 1; d < w.shape().size(); ++d) inner *= static_cast<size_t>(w.shape()[d]);
  // Of a ConvTranspose with groups, input channels (axis 0) of group g have the filters g * size ... alone.
  const size_t groups = filters / std::max<size_t>(size, 1);
  std::vector<float> space;
  const std::span<const float> values = w.as_floats(space);
  std::vector<double> out(filters, 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t group = groups > 1 ? i / (values.size() / rows) / (rows / groups) : 0;
    const double v = values[i];
    out[group * size + i / inner % size] += squares ? v * v : std::fabs(v);
  }
  return out;
}

// The batch normalization that alone reads the layer, with constant parameters.
const Node* normalization_behind(const ir::Graph& graph, const Node& layer) {
  const Node* reader = only_reader(graph, layer.output());
  if (reader == nullptr || reader->kind != OpKind::kBatchNormalization) return nullptr;
  return reader->input(1)->is_constant() && reader->input(4)->is_constant() ? reader : nullptr;
}

std::vector<double> norms(const ir::Graph& graph, const Node& layer, size_t filters, const PruneOptions& options) {
  const bool squares = options.criterion != PruneCriterion::kL1;
  std::vector<double> out = sums(layer, filters, squares);
  if (squares)
    for (double& v : out) v = std::sqrt(v);
  const Node* bn = normalization_behind(graph, layer);
  if (bn == nullptr) return out;
  const std::vector<float> gamma = bn->input(1)->constant->to_floats(), variance = bn->input(4)->constant->to_floats();
  for (size_t i = 0; i < filters; ++i) {
    if (options.criterion == PruneCriterion::kBatchNormScale)
      out[i] = std::fabs(gamma[i]);
    else if (options.fold_batch_norm)
      out[i] *= std::fabs(gamma[i]) / std::sqrt(double{variance[i]} + bn->get_float("epsilon"));
  }
  return out;
}

std::vector<double> normalized(std::vector<double> norms, PruneNormalizer normalizer) {
  double unit = 0;
  for (const double v : norms) unit = normalizer == PruneNormalizer::kMax ? std::max(unit, v) : unit + v * v;
  if (normalizer == PruneNormalizer::kL2) unit = std::sqrt(unit) / static_cast<double>(norms.size());
  for (double& v : norms) v = unit > 0 ? v / unit : 0;
  return norms;
}

bool has_filters(const Node& node, const ir::IndexTies& ties) {
  const Value* w = node.input(1);
  if (!node.info().has(ir::trait::kWeighted) || !w->is_constant() || node.output() == nullptr) return false;
  if (w->type.data_type != ir::DataType::kFloat32 || !quant::weight_axis(node)) return false;
  if (node.kind == OpKind::kMatMul && w->type.shape->size() != 2) return false;
  const size_t axis = ties.rank(node.output()) < 2 ? 0 : channel_axis(node, ties);
  const int64_t filters = ties.size(node.output(), axis),
                size = (*w->type.shape)[static_cast<size_t>(*quant::weight_axis(node))];
  return axis > 0 && filters > 0 && size > 0 && filters % size == 0;
}

}  // namespace

std::vector<PrunableLayer> prunable_layers(const ir::Graph& graph, const ir::IndexTies& ties,
                                           const PruneOptions& options) {
  std::vector<PrunableLayer> out;
  for (const auto& node : graph.nodes()) {
    if (!has_filters(*node, ties)) continue;
    PrunableLayer layer{node.get(), {}, {}};
    const size_t axis = channel_axis(*node, ties);
    for (int64_t i = 0; i < ties.size(node->output(), axis); ++i)
      layer.filters.push_back(ties.place(node->output(), axis, i));
    layer.scores = normalized(norms(graph, *node, layer.filters.size(), options), options.normalizer);
    out.push_back(std::move(layer));
  }
  return out;
}

}  // namespace octet::passes

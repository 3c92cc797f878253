#include "quant/placement_codes.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "quant/fusion_model.h"

namespace octet::quant {
namespace {

// What a group says that a scale is shared by; those without one stand alone.
template <typename Visit>
void for_activations(std::vector<PlacedQuantizer>& plan, Visit&& visit) {
  for (PlacedQuantizer& p : plan)
    if (!p.value->is_constant()) visit(p);
}

void choose_signs(const PlacementOptions& options, const LayerSettings& layers, std::vector<PlacedQuantizer>& plan) {
  const TargetProfile& target = profile(options.target);
  const Rules rules = combine(options.rules);
  const bool asymmetric = options.asymmetric_activations.value_or(false) || rules.tfmot;
  const bool automatic = !options.asymmetric_activations && target.zero_points && !rules.dla;
  std::set<std::string> asymmetric_groups;
  for_activations(plan, [&](PlacedQuantizer& p) {
    const LayerOptions* layer = layers.find(p.uses, [](const LayerOptions& l) { return l.asymmetric.has_value(); });
    p.asymmetric = layer ? *layer->asymmetric : asymmetric || (automatic && hardly_negative(p.value));
    if (!p.asymmetric) return;
    if (target.signed_only)
      fail_usage("quantization: '", p.value->name, "' would be asymmetric, and the target ",
                 schema::enum_name(options.target), " takes zero points of 0 alone; leave ",
                 rules.tfmot ? "the rules tfmot" : "quant.activations.asymmetric", " out");
    if (rules.dla)
      fail_usage("quantization: '", p.value->name, "' would be asymmetric, and a DLA has symmetric ranges alone");
    if (!p.scale_group.empty()) asymmetric_groups.insert(p.scale_group);
  });
  const bool any_unsigned = options.unsigned_activations || target.unsigned_activations;
  SignAnalysis signs;
  std::set<std::string> signed_groups;
  if (any_unsigned)
    for_activations(plan, [&](PlacedQuantizer& p) {
      if (!signs.cannot_be_negative(p.value)) signed_groups.insert(p.scale_group);
    });
  for_activations(plan, [&](PlacedQuantizer& p) {
    if (!p.scale_group.empty()) p.asymmetric = asymmetric_groups.count(p.scale_group) > 0;
    if (!any_unsigned) return;
    const bool never_negative =
        signs.cannot_be_negative(p.value) && (p.scale_group.empty() || !signed_groups.count(p.scale_group));
    if (never_negative) p.asymmetric = false;  // 0 is the smallest code as it is
    if (never_negative || p.asymmetric) p.qmin = 0, p.qmax = 255;
  });
}

void choose_bits(const ir::Graph& graph, const PlacementOptions& options, const LayerSettings& layers,
                 std::vector<PlacedQuantizer>& plan) {
  std::unordered_set<const ir::Node*> outer = outermost_weighted(graph, true);
  outer.merge(outermost_weighted(graph, false));
  std::vector<int64_t> bits;
  std::map<std::string, int64_t> of_group;
  for (const PlacedQuantizer& p : plan) {
    const bool weights = p.value->is_constant();
    const bool is_outer =
        std::any_of(p.uses.begin(), p.uses.end(), [&](const QuantizedUse& use) { return outer.count(use.node) > 0; });
    const int64_t all = weights ? options.weight_bits : options.activation_bits;
    bits.push_back(is_outer ? std::max(all, options.outer_bits) : all);
    if (const LayerOptions* layer = layers.find(
            p.uses, [&](const LayerOptions& l) { return !(weights ? l.any_weight_bits : l.any_activation_bits); }))
      bits.back() = weights ? layer->weight_bits : layer->activation_bits;
    if (!p.scale_group.empty()) of_group[p.scale_group] = std::max(of_group[p.scale_group], bits.back());
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    PlacedQuantizer& p = plan[i];
    const int64_t n = p.scale_group.empty() ? bits[i] : of_group[p.scale_group];
    const int half = 1 << (n - 1);
    p.qmax = p.qmin == 0 ? 2 * half - 1 : half - 1;
    if (p.qmin < 0) p.qmin = p.value->is_constant() ? 1 - half : -half;
  }
}

}  // namespace

LayerSettings::LayerSettings(const ir::Graph& graph, const std::vector<LayerOptions>& layers) : layers_(layers) {
  for (const LayerOptions& layer : layers) nodes_.push_back(select_nodes(graph, {layer.nodes}, "quantization layers"));
}

const LayerOptions* LayerSettings::find(const std::vector<QuantizedUse>& uses,
                                        const std::function<bool(const LayerOptions&)>& says) const {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (says(layers_[i]) &&
        std::any_of(uses.begin(), uses.end(), [&](const QuantizedUse& use) { return nodes_[i].count(use.node) > 0; }))
      return &layers_[i];
  return nullptr;
}

void LayerSettings::require_quantized(const std::vector<PlacedQuantizer>& plan) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto reads = [&](const PlacedQuantizer& p) {
      return std::any_of(p.uses.begin(), p.uses.end(),
                         [&](const QuantizedUse& use) { return nodes_[i].count(use.node) > 0; });
    };
    if (std::any_of(plan.begin(), plan.end(), reads)) continue;
    const NodeSelector& s = layers_[i].nodes;
    fail_usage(
        "quantization layers: nothing that '", s.name, s.regex, s.op, s.chain,
        "' selects reads anything quantized, so its settings mean nothing; select convolutions, products, sums or "
        "pools that are not excluded");
  }
}

void choose_codes(const ir::Graph& graph, const PlacementOptions& options, const LayerSettings& layers,
                  std::vector<PlacedQuantizer>& plan) {
  choose_signs(options, layers, plan);
  choose_bits(graph, options, layers, plan);
}

}  // namespace octet::quant

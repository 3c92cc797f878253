// What a plan of quantizers says: of their calibration, and to people.
#include "base/error.h"
#include "quant/placement.h"
#include "quant/placement_codes.h"

namespace octet::quant {

using ir::Graph;

std::string PlacedQuantizer::value_name(const Graph& graph) const {
  return output ? graph.unique_name(value->name + "/float") : value->name;
}

LayerCalibration layer_calibration(const Graph& graph, const PlacementOptions& options,
                                   const std::vector<PlacedQuantizer>& plan) {
  const LayerSettings settings(graph, options.layers);
  LayerCalibration out;
  for (const PlacedQuantizer& p : plan) {
    const auto find = [&](auto&& says) { return settings.find(p.uses, says); };
    if (p.value->is_constant()) {
      if (const LayerOptions* l = find([](const LayerOptions& o) { return o.weight_method.has_value(); }))
        out.weights[p.value->name] = *l->weight_method;
      continue;
    }
    LayerOptions found;
    if (const LayerOptions* l = find([](const LayerOptions& o) { return o.method.has_value(); }))
      found.method = l->method;
    if (const LayerOptions* l = find([](const LayerOptions& o) { return !o.any_percentile; }))
      found.any_percentile = false, found.percentile = l->percentile;
    if (const LayerOptions* l = find([](const LayerOptions& o) { return o.skip_zeros.has_value(); }))
      found.skip_zeros = l->skip_zeros;
    if (found.says_of_activations()) out.activations[p.value_name(graph)] = found;
  }
  return out;
}

namespace {

int bits_of(const PlacedQuantizer& p) {
  int bits = 1;
  while ((1 << bits) < p.qmax - p.qmin + 1) ++bits;
  return bits;
}

}  // namespace

std::string placement_text(const std::vector<PlacedQuantizer>& plan) {
  std::string out;
  for (const PlacedQuantizer& p : plan) {
    out += str(p.value->name, "  ", p.qmin == 0 ? "u" : "s", bits_of(p));
    out += p.axis ? str(" per channel (axis ", *p.axis, ")") : std::string(" per tensor");
    if (p.asymmetric) out += " asymmetric";
    if (!p.scale_group.empty()) out += str(" scale of '", p.scale_group, "'");
    out += "  ->";
    for (size_t i = 0; i < p.uses.size(); ++i)
      out += str(i ? ", " : " ", p.uses[i].node->info().name, " '", p.uses[i].node->name, "'");
    if (p.output) out += p.uses.empty() ? " output" : ", output";
    if (p.relu6) out += "  (ReLU6)";
    out += "\n";
  }
  return out;
}

}  // namespace octet::quant

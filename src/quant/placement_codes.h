// Which codes a planned quantizer has: signed or not, how many bits, with a zero point or without.
#pragma once
#include <functional>
#include <unordered_set>
#include <vector>

#include "quant/placement.h"

namespace octet::quant {

// The entries of quant.layers, found on one graph.
class LayerSettings {
 public:
  // UserError (exit 2) for an entry that selects no node.
  LayerSettings(const ir::Graph& graph, const std::vector<LayerOptions>& layers);

  // The first entry that selects one of the readers and of which `says` holds; nullptr: none.
  const LayerOptions* find(const std::vector<QuantizedUse>& uses,
                           const std::function<bool(const LayerOptions&)>& says) const;
  // UserError (exit 2) for an entry none of whose nodes reads anything of the plan.
  void require_quantized(const std::vector<PlacedQuantizer>& plan) const;

 private:
  const std::vector<LayerOptions>& layers_;
  std::vector<std::unordered_set<const ir::Node*>> nodes_;
};

// Sets qmin, qmax and asymmetric of all of the plan. UserError (exit 2) for what the target refuses.
void choose_codes(const ir::Graph& graph, const PlacementOptions& options, const LayerSettings& layers,
                  std::vector<PlacedQuantizer>& plan);

}  // namespace octet::quant

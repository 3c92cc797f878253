// What a placement plans, as text.
#pragma once
#include <string>
#include <vector>

#include "quant/placement.h"

namespace octet::passes {

// The quantizers, one a line.
inline std::string planned(const ir::Graph& graph, const quant::PlacementOptions& options = {}) {
  return quant::placement_text(quant::plan_placement(graph, options));
}

// Those of tensors that are computed.
inline std::string activations(const ir::Graph& graph, const quant::PlacementOptions& options = {}) {
  std::vector<quant::PlacedQuantizer> plan = quant::plan_placement(graph, options);
  std::erase_if(plan, [](const quant::PlacedQuantizer& p) { return p.value->is_constant(); });
  return quant::placement_text(plan);
}

// Those of weights.
inline std::string weights(const ir::Graph& graph, const quant::PlacementOptions& options = {}) {
  std::vector<quant::PlacedQuantizer> plan = quant::plan_placement(graph, options);
  std::erase_if(plan, [](const quant::PlacedQuantizer& p) { return !p.value->is_constant(); });
  return quant::placement_text(plan);
}

}  // namespace octet::passes

// The layers whose filters can be pruned, and how much each filter counts.
#pragma once
#include <vector>

#include "ir/index_ties.h"
#include "passes/prune/options.h"

namespace octet::passes {

// A product with constant weights; several layers may have the same weights.
struct PrunableLayer {
  const ir::Node* node;
  std::vector<ir::IndexTies::Place> filters;  // along the channels of its output
  // Of each filter, >= 0: its norm, by the normalizer made comparable with those of other layers.
  std::vector<double> scores;
};

// In the order of the nodes. Norms are computed in float64: of a Conv over [C / groups, kernel...], of a ConvTranspose
// over the input channels and kernel, of Gemm and MatMul over the features.
std::vector<PrunableLayer> prunable_layers(const ir::Graph& graph, const ir::IndexTies& ties,
                                           const PruneOptions& options);

}  // namespace octet::passes

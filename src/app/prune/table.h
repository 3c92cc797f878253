// What pruning did, or would do, layer by layer: for a terminal and for programs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "passes/prune/channel_groups.h"

namespace octet::app {

template <typename T>
struct BeforeAfter {
  T before{}, after{};
};

// A product with weights. Parameters of what stands between such layers are in the totals alone.
struct PrunedLayer {
  std::string name, op;
  BeforeAfter<int64_t> inputs, outputs;  // channels or features; -1: open
  BeforeAfter<int64_t> parameters;
  BeforeAfter<std::optional<int64_t>> macs;  // as ir/summary.h
  int group = -1;                            // layers of one number lose channels together; -1: none
  std::string why_kept;                      // why this layer, or some of its channels, cannot lose any
};

struct PruneSummary {
  std::vector<PrunedLayer> layers;
  BeforeAfter<int64_t> parameters;
  BeforeAfter<std::optional<int64_t>> macs;
  // TAO's KPI: parameters after / before.
  double pruning_ratio() const;
};

// Types of both graphs are inferred; `pruned` is what cut_channels made of `whole`.
PruneSummary summarize_pruning(const ir::Graph& whole, const ir::Graph& pruned, const passes::ChannelGroups& groups);

std::string prune_table(const PruneSummary& summary);
nlohmann::ordered_json prune_json(const PruneSummary& summary);

}  // namespace octet::app

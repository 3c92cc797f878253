// The threshold at which a network has become as small, or as fast, as is asked for.
#pragma once
#include <optional>
#include <string>

#include "app/prune/latency.h"
#include "passes/prune/channel_groups.h"

namespace octet::app {

// One of them; shares are of the whole network, in (0, 1).
struct PruneTarget {
  double parameters = 0, macs = 0;
  std::string latency;  // a share of the whole network's time ("0.6"), or milliseconds ("4.5ms")

  bool any() const { return parameters > 0 || macs > 0 || !latency.empty(); }
};

struct PruneSearch {
  double threshold = 0;
  std::optional<EngineTimes> times;  // of the network at this threshold, where times were looked at
  std::string timed_on;              // "INT8 engine, avx512_vnni, 2 threads"
};

// The lowest threshold that reaches the target. Times are measured on this machine, that of the whole network beside
// that of every candidate. UserError with what can be reached where the target cannot, (exit 2) for a target that is
// none.
PruneSearch search_threshold(const ir::Graph& graph, const passes::ChannelGroups& groups, const PruneTarget& target,
                             const EngineTimeOptions& engine);

}  // namespace octet::app

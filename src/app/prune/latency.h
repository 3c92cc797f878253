// How long the engine takes for a network that is not trained to its end yet.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "app/bench/contender.h"
#include "app/bench/windows.h"
#include "ir/graph.h"

namespace octet::app {

struct EngineTimeOptions {
  bool int8 = true;  // quantized by the default placement with made-up ranges, which change no time; else FP32
  int threads = 0;   // 0: as many as CPUs
  std::string isa;   // empty: the best of this machine
};

// A network as the engine runs it, by the estimated tactics, ready to be timed. UserError where it cannot be compiled.
std::unique_ptr<EngineLatency> engine_for_timing(const ir::Graph& graph, const EngineTimeOptions& options);

struct EngineTimes {
  double whole_ms = 0, pruned_ms = 0;  // medians
  double share = 0;                    // pruned / whole: the median of the turns
};
// Both take turns, so that a noisy neighbor hits both.
EngineTimes time_beside(EngineLatency& whole, EngineLatency& pruned);

}  // namespace octet::app

// From a network to an engine plan whose convolutions have their kernels.
#pragma once
#include <string>

#include "engine/plan.h"
#include "ir/graph.h"
#include "lower/lower.h"

namespace octet::app {

struct EngineBuildOptions {
  int threads = 0;                 // that the choice of kernels is made for; 0: as many as CPUs
  bool tactics_by_timing = false;  // with a stopwatch, in some seconds; else by estimate
};

// `compile.isa` is what the kernels are chosen for; the engine runs on every CPU.
engine::Plan build_engine(const ir::Graph& graph, const lower::CompileOptions& compile,
                          const EngineBuildOptions& options = {});

// "21 layers, 20 in INT8, arena 120 KiB, weights 270 KiB"
std::string engine_summary(const engine::Plan& plan, Isa isa);

}  // namespace octet::app

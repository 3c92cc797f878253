// Lowering: a graph, float or with FakeQuantize nodes, becomes a plan for the engine.
//
// What the plan computes equals the graph executed in float with fake quantization, up to ties within one step:
// rounding happens where the graph has a FakeQuantize and nowhere else. A quantizer only moves where that provably
// gives the same codes (through MaxPool, clamps and moves of data, which commute with it).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "engine/plan.h"
#include "ir/graph.h"

namespace octet::lower {

struct CompileOptions {
  int64_t batch = 0;  // leading dimension of every input; 0: that of the file, 1 where it is dynamic
  // The whole shape of the only input, where its sizes are dynamic; empty: that of the file with `batch`.
  std::vector<int64_t> input_shape;
  Isa isa = default_isa();  // noted in the file; the plan runs on every CPU
  std::string dump_passes;  // a folder for the text of the graph after each pass; empty: none
  // The plan has no outputs: what the graph puts out stays in the arena, as floats in the layout of the step that makes
  // it, in buffers of these names, for Executor::run_and_show.
  bool outputs_stay = false;
};

// UserError naming the node for what cannot be compiled: dynamic image sizes, NaN weights, a quantizer that still
// observes, an operator or variant the engine does not have.
engine::Plan lower(const ir::Graph& graph, const CompileOptions& options = {});

}  // namespace octet::lower

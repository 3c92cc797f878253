#include "app/prune/latency.h"

#include "engine/tactics.h"
#include "ir/infer.h"
#include "lower/lower.h"
#include "passes/pipelines.h"
#include "quant/observer.h"

namespace octet::app {
namespace {

void quantize_blindly(ir::Graph& graph) {
  passes::run_pipeline(graph, passes::placement_passes({}));
  std::map<std::string, quant::Range> ranges;
  for (const std::string& name : quant::CalibrationSet(graph).names()) ranges[name] = {.amax = 1, .min = -1, .max = 1};
  passes::run_pipeline(graph, passes::scale_passes(ranges, {}));
}

}  // namespace

std::unique_ptr<EngineLatency> engine_for_timing(const ir::Graph& graph, const EngineTimeOptions& options) {
  ir::Graph deployed = graph.clone();
  if (options.int8)
    quantize_blindly(deployed);
  else
    passes::run_pipeline(deployed, passes::preparation_passes(/*keep_dropout=*/false));
  const Isa isa = chosen_isa(options.isa);
  engine::Plan plan = lower::lower(deployed, {.isa = isa});
  engine::choose_tactics_by_model(plan, {.isa = isa, .threads = options.threads});
  auto shared = std::make_shared<const engine::Plan>(std::move(plan));
  return std::make_unique<EngineLatency>(std::make_shared<const engine::PreparedPlan>(shared, isa), options.threads);
}

EngineTimes time_beside(EngineLatency& whole, EngineLatency& pruned) {
  constexpr int kTurns = 5;
  constexpr BenchWindow kWindow{.runs = 3, .milliseconds = 60};
  WindowTimes a, b;
  for (int i = 0; i < kTurns; ++i) {
    a.windows.push_back(whole.turn(kWindow));
    b.windows.push_back(pruned.turn(kWindow));
  }
  return {.whole_ms = a.median(), .pruned_ms = b.median(), .share = times_as_long(b, a).median};
}

}  // namespace octet::app

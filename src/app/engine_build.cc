#include "app/engine_build.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "engine/tactics.h"

namespace octet::app {
namespace {

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace

engine::Plan build_engine(const ir::Graph& graph, const lower::CompileOptions& compile,
                          const EngineBuildOptions& options) {
  engine::Plan plan = lower::lower(graph, compile);
  const engine::TacticOptions tactics{.isa = compile.isa, .threads = options.threads};
  if (options.tactics_by_timing) {
    const engine::TimedTactics timed = engine::choose_tactics_by_timing(plan, tactics);
    log_info("timed ", timed.runs, " runs in ", three_digits(timed.seconds), " s: ", timed.changed,
             " layers left the estimate, ", three_digits(timed.before_ms), " -> ", three_digits(timed.after_ms), " ms");
  } else {
    engine::choose_tactics_by_model(plan, tactics);
  }
  return plan;
}

std::string engine_summary(const engine::Plan& plan, Isa isa) {
  const std::vector<engine::LayerInfo> layers = engine::layer_list(plan, isa);
  const auto int8 =
      std::count_if(layers.begin(), layers.end(), [](const auto& layer) { return layer.precision == "int8"; });
  return str(layers.size(), " layers, ", int8, " in INT8, arena ", plan.arena_bytes / 1024, " KiB, weights ",
             plan.constants ? plan.constants->bytes().size() / 1024 : 0, " KiB");
}

}  // namespace octet::app

#include "app/bench/load.h"

#include <chrono>
#include <fstream>

#include "app/bench/contender.h"
#include "app/bench/windows.h"
#include "app/network_file.h"
#include "base/output_guard.h"
#include "engine/engine_file.h"
#include "engine/tactics.h"
#include "lower/lower.h"

namespace octet::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kMebibyte = 1024 * 1024;

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// smaps_rollup counts pages; VmRSS of status is what the kernel's counters of each CPU have told so far.
double resident_mb() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;)
    if (double kib; word == "Rss:" && rollup >> kib) return kib / 1024;
  return 0;
}

// The inputs and outputs of a run belong to the caller, here to the benchmark.
double caller_mb(const engine::Plan& plan) {
  int64_t elements = 0;
  for (const auto* ids : {&plan.inputs, &plan.outputs})
    for (int id : *ids) elements += plan.buffers[id].elements();
  return static_cast<double>(elements) * sizeof(float) / kMebibyte;
}

}  // namespace

double BenchModel::weights_mb() const {
  return plan().constants ? static_cast<double>(plan().constants->bytes().size()) / kMebibyte : 0;
}

double BenchModel::derived_mb() const {
  return static_cast<double>(prepared->derived_bytes()) / kMebibyte;
}

double BenchModel::arena_mb() const {
  return static_cast<double>(plan().arena_bytes) / kMebibyte;
}

BenchModel load_bench_model(const std::string& path, int64_t batch, int threads, Isa isa,
                            const std::vector<ir::InputShape>& shapes) {
  require_file(path, "the model");
  BenchModel model;
  const double before = resident_mb();
  const auto remember_memory = [&] {
    model.rss_mb = resident_mb(), model.rss_engine_mb = model.rss_mb - before - caller_mb(model.plan());
  };
  if (!path.ends_with(".octet")) {
    const auto start = Clock::now();
    engine::Plan plan = lower::lower(load_network(path, shapes), {.batch = batch, .isa = isa, .dump_passes = {}});
    engine::choose_tactics_by_model(plan, {.isa = isa, .threads = threads});
    model.compile_ms = since(start);
    model.prepared =
        std::make_shared<const engine::PreparedPlan>(std::make_shared<const engine::Plan>(std::move(plan)), isa);
    EngineLatency(model.prepared, threads).run();
    remember_memory();
    return model;
  }
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    model.prepared = std::make_shared<const engine::PreparedPlan>(engine::load_engine(path), isa);
    EngineLatency context(model.prepared, threads);
    context.run();
    times.push_back(since(start));
    if (i == 0) remember_memory();
  }
  model.load_to_first_ms = median_of(times);
  return model;
}

}  // namespace octet::app

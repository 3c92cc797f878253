#include "app/bench/layers.h"

#include <algorithm>
#include <cstdio>

#include "app/bench/windows.h"
#include "base/error.h"
#include "dense/program.h"
#include "engine/step_cost.h"
#include "report/format.h"
#include "report/text_table.h"

namespace octet::app {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<int64_t>& macs, double value) {
  return macs ? Json(value) : Json(nullptr);
}

}  // namespace

double LayerTime::percent_of_peak(const engine::MachinePeak& peak) const {
  const double most = info.precision == "int8" ? peak.int8_gmac_per_s : peak.float_gmac_per_s;
  return most > 0 ? 100 * gmac_per_s() / most : 0;
}

LayerTimes time_layers(EngineLatency& engine, int64_t runs) {
  const engine::Plan& plan = engine.executor.plan();
  std::vector<engine::LayerInfo> infos = engine::layer_list(plan, engine.executor.isa());
  infos.resize(plan.steps.size());  // those of a program behind the plan are timed together
  std::vector<std::vector<double>> us(infos.size());
  std::vector<double> waiting, behind;
  engine.run();
  engine.executor.set_profiling(true);
  for (int64_t r = 0; r < runs; ++r) {
    engine.executor.clear_profile();
    engine.run();
    const std::vector<int64_t>& ns = engine.executor.step_nanoseconds();
    OCTET_CHECK(ns.size() == infos.size(), ns.size(), " against ", infos.size());
    for (size_t i = 0; i < us.size(); ++i) us[i].push_back(static_cast<double>(ns[i]) * 1e-3);
    waiting.push_back(static_cast<double>(engine.executor.waiting_nanoseconds()) * 1e-3);
    behind.push_back(static_cast<double>(engine.executor.program_nanoseconds()) * 1e-3);
  }
  engine.executor.set_profiling(false);
  LayerTimes times{.waiting_us = median_of(std::move(waiting))};
  std::vector<LayerTime>& layers = times.layers;
  for (size_t i = 0; i < infos.size(); ++i) {
    const engine::StepCost cost = engine::step_cost(plan, plan.steps[i]);
    layers.push_back({infos[i], median_of(std::move(us[i])), cost.macs, cost.bytes});
  }
  for (const engine::BandedSteps& group : engine.executor.banded_steps())
    for (size_t i = group.first; i <= group.last; ++i) layers[i].in_bands = true;
  if (plan.program)
    layers.push_back({{.name = "behind the plan",
                       .op = str(dense::operation_count(*plan.program), " operations"),
                       .precision = "fp32",
                       .kernel = "program",
                       .reason = "their sizes come up in a run"},
                      median_of(std::move(behind)),
                      std::nullopt,
                      0});
  return times;
}

std::string layer_table(const std::vector<LayerTime>& layers, const engine::MachinePeak& peak) {
  double sum = 0;
  for (const LayerTime& l : layers) sum += l.us;
  report::TextTable table({"layer", "operation", "precision", "kernel", "us", "share %", "GMAC/s", "% of peak", "KiB",
                           "GB/s", "why not INT8"});
  for (const LayerTime& l : layers) {
    const bool products = l.macs.value_or(0) > 0;
    table.add_row(
        {l.info.name, l.info.op, l.info.precision, l.info.kernel + (l.in_bands ? " (bands)" : ""),
         report::fixed(l.us, 1), report::fixed(100 * l.us / sum, 1), products ? report::fixed(l.gmac_per_s(), 1) : "-",
         products ? report::fixed(l.percent_of_peak(peak), 1) : "-",
         report::fixed(static_cast<double>(l.bytes) / 1024, 0), report::fixed(l.gb_per_s(), 1), l.info.reason});
  }
  return table.text();
}

Json layers_json(const std::vector<LayerTime>& layers, const engine::MachinePeak& peak) {
  Json out = Json::array();
  for (const LayerTime& l : layers)
    out.push_back({{"name", l.info.name},
                   {"op", l.info.op},
                   {"precision", l.info.precision},
                   {"kernel", l.info.kernel},
                   {"in_bands", l.in_bands},
                   {"us", l.us},
                   {"gmacs", or_null(l.macs, static_cast<double>(l.macs.value_or(0)) * 1e-9)},
                   {"gmac_per_s", or_null(l.macs, l.gmac_per_s())},
                   {"percent_of_peak", or_null(l.macs, l.percent_of_peak(peak))},
                   {"bytes", l.bytes},
                   {"gb_per_s", l.gb_per_s()},
                   {"reason", l.info.reason}});
  return out;
}

Json totals_json(const std::vector<LayerTime>& layers, const engine::MachinePeak& peak, double milliseconds) {
  double macs = 0, us = 0;
  int64_t bytes = 0, int8 = 0, unknown = 0;
  for (const LayerTime& l : layers) {
    macs += static_cast<double>(l.macs.value_or(0));
    unknown += !l.macs;
    bytes += l.bytes;
    us += l.us;
    int8 += l.info.precision == "int8";
  }
  const double rate = macs / milliseconds * 1e-6;
  return {{"layers", layers.size()},
          {"int8_layers", int8},
          {"layers_without_known_macs", unknown},
          {"gmacs", macs * 1e-9},
          {"gmac_per_s", rate},
          {"percent_of_peak", peak.int8_gmac_per_s > 0 ? 100 * rate / peak.int8_gmac_per_s : 0},
          {"bytes", bytes},
          {"gb_per_s", static_cast<double>(bytes) / milliseconds * 1e-6},
          {"sum_of_layers_us", us}};
}

std::string chrome_trace(EngineLatency& engine) {
  constexpr int kRuns = 20;
  const engine::Plan& plan = engine.executor.plan();
  const std::vector<engine::LayerInfo> infos = engine::layer_list(plan, engine.executor.isa());
  engine.executor.set_tracing(true);
  std::vector<engine::StepSpan> fastest;
  int64_t first = 0, least = 0;
  for (int r = 0; r < kRuns; ++r) {
    engine.run();
    const std::vector<engine::StepSpan>& spans = engine.executor.step_spans();
    if (spans.empty()) break;
    int64_t start = spans[0].start, end = spans[0].end;
    for (const engine::StepSpan& s : spans)
      if (s.end > 0) start = std::min(start, s.start), end = std::max(end, s.end);
    if (r > 0 && end - start >= least) continue;
    fastest = spans, first = start, least = end - start;
  }
  engine.executor.set_tracing(false);
  Json events = Json::array();
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", str("octet ", plan.name)}}}});
  for (int t = 0; t < engine.executor.threads(); ++t)
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", t}, {"args", {{"name", str("thread ", t)}}}});
  for (size_t i = 0; i < fastest.size(); ++i) {
    if (fastest[i].end == 0) continue;  // a run of fewer parts
    const engine::LayerInfo& info = infos[i % infos.size()];
    events.push_back({{"name", info.name},
                      {"cat", info.precision},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", i / infos.size()},
                      {"ts", static_cast<double>(fastest[i].start - first) * 1e-3},
                      {"dur", static_cast<double>(fastest[i].end - fastest[i].start) * 1e-3},
                      {"args", {{"operation", info.op}, {"kernel", info.kernel}}}});
  }
  return Json({{"traceEvents", events}, {"displayTimeUnit", "ns"}})
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace octet::app

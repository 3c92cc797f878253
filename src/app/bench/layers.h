// What every layer of an engine costs, beside what the machine could do.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/contender.h"
#include "engine/machine_peak.h"

namespace octet::app {

struct LayerTime {
  engine::LayerInfo info;
  double us = 0;  // of the part that took longest, median over the runs; without waiting for other threads
  std::optional<int64_t> macs;  // see engine::StepCost
  int64_t bytes = 0;
  bool in_bands = false;  // engine/row_bands.h

  double gmac_per_s() const { return macs && us > 0 ? static_cast<double>(*macs) / us * 1e-3 : 0; }
  double gb_per_s() const { return us > 0 ? static_cast<double>(bytes) / us * 1e-3 : 0; }
  // Of the peak of the layer's precision; a Winograd kernel may pass 100.
  double percent_of_peak(const engine::MachinePeak& peak) const;
};

struct LayerTimes {
  std::vector<LayerTime> layers;
  double waiting_us = 0;  // what a run takes beside them, median: threads that wait for each other or for a CPU
};
LayerTimes time_layers(EngineLatency& engine, int64_t runs);

std::string layer_table(const std::vector<LayerTime>& layers, const engine::MachinePeak& peak);
nlohmann::ordered_json layers_json(const std::vector<LayerTime>& layers, const engine::MachinePeak& peak);
// Sums over the layers, with rates over `milliseconds` (one whole inference).
nlohmann::ordered_json totals_json(const std::vector<LayerTime>& layers, const engine::MachinePeak& peak,
                                   double milliseconds);

// A few runs with the clock of every thread on; the fastest one as a file for chrome://tracing or ui.perfetto.dev, with
// one row per thread and one block per step.
std::string chrome_trace(EngineLatency& engine);

}  // namespace octet::app

// Post-training quantization, as calibrate (images of a spec) and quantize (a foreign model and a folder) do it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"
#include "quant/observer.h"
#include "quant/options.h"

namespace octet::app {

// What runs one epoch of `loader` through the float network that `graph` is without its FakeQuantize nodes: what each
// of these reads, and the float32 activations `tensors`, as int8, of graph.program's those that an image gets to.
// `progress` is told the images so far. `peaks`: those of single images, too (CalibrationOptions::need_peaks).
using Observe = std::function<quant::CalibrationSet(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                                    data::Loader& loader,
                                                    const std::function<void(int64_t images)>& progress, bool peaks)>;

// The engine (engine_observer.h). UserError where there is no image.
quant::CalibrationSet observe_by_engine(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                        data::Loader& loader, const std::function<void(int64_t images)>& progress,
                                        bool peaks);

// Changes the float `graph` into its quantized form: folds batch norms, places quantizers, observes one epoch of
// `loader`, sets the scales. Returns what was observed. `dump_passes`: a folder for the text of the graph after each
// pass; empty: none. Bias correction and adaptive rounding, which `options` may ask for, are not done here: they need
// LibTorch (training/calibration.h).
quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes, const Observe& observe);

// The ranges of `tensors`, float32 activations of a float graph, in one epoch of `loader`.
std::map<std::string, quant::Range> measure_ranges(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                                   data::Loader& loader, const quant::CalibrationOptions& options,
                                                   const Observe& observe);

// Every tensor with the range that was chosen and what the other methods would have chosen.
nlohmann::ordered_json calibration_json(const quant::CalibrationSet& observed,
                                        const quant::CalibrationOptions& options);

}  // namespace octet::app

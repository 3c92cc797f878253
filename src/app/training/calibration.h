// Post-training quantization, as calibrate (images of a spec) and quantize (a foreign model and a folder) do it.
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"
#include "quant/observer.h"
#include "quant/options.h"
#include "train/communicator.h"

namespace octet::app {

// Changes the float `graph` into its quantized form: folds batch norms, places quantizers, observes one epoch of
// `loader`, sets the scales. Returns what was observed. `dump_passes`: a folder for the text of the graph after each
// pass; empty: none. Several ranks, whose loaders share the images, all get what one would.
quant::CalibrationSet calibrate(ir::Graph& graph, data::Loader& loader, const quant::QuantOptions& options,
                                const std::filesystem::path& dump_passes,
                                train::Communicator& communicator = train::single_process());

// The ranges of `tensors`, float32 activations of a float graph, in one epoch of `loader`.
std::map<std::string, quant::Range> measure_ranges(const ir::Graph& graph, const std::vector<std::string>& tensors,
                                                   data::Loader& loader, const quant::CalibrationOptions& options);

// Every tensor with the range that was chosen and what the other methods would have chosen.
nlohmann::ordered_json calibration_json(const quant::CalibrationSet& observed,
                                        const quant::CalibrationOptions& options);

}  // namespace octet::app

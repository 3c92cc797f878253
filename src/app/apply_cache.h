// A float network and a calibration cache of TensorRT become a network with quantizers.
#pragma once
#include <filesystem>
#include <string>

#include "ir/graph.h"
#include "quant/calibration_cache.h"
#include "quant/options.h"

namespace octet::app {

// Folds batch norms, places quantizers by the rules, and gives them the scales of the cache, bit for bit; weights get
// theirs by `options.weights`. Tensors that the cache lacks get what follows from the others (quant/tensor_ranges.h);
// where nothing does, they and the products that read them stay in floating point. Says in the log how many names
// matched, and which are in one of the two only. `name` stands for the cache in messages. UserError when no name
// matches, or nothing is left to quantize.
void apply_cache(ir::Graph& graph, const quant::CalibrationCache& cache, const std::string& name,
                 const quant::QuantOptions& options, const std::filesystem::path& dump_passes = {});

// The same for a cache file.
void apply_cache_file(ir::Graph& graph, const std::filesystem::path& file, const quant::QuantOptions& options,
                      const std::filesystem::path& dump_passes = {});

}  // namespace octet::app

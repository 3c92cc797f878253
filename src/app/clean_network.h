// The form in which TensorRT up to 10.x takes INT8: a float network and the ranges of its tensors beside it.
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "quant/cache_losses.h"
#include "quant/calibration_cache.h"
#include "quant/observer.h"
#include "quant/tensor_ranges.h"

namespace octet::app {

struct CleanNetwork {
  ir::Graph graph;             // without quantizers; weights are those behind them, in full
  quant::TensorRanges ranges;  // by the names of this graph: those of the quantizers
  std::vector<quant::CacheLoss> losses;
};

CleanNetwork take_quantizers_out(const ir::Graph& quantized);

// Ranges of tensors of a float graph, by running images through it.
using MeasureRanges =
    std::function<std::map<std::string, quant::Range>(const ir::Graph& graph, const std::vector<std::string>& tensors)>;

// Gives every tensor of the network a range, as a DLA wants: what follows from the quantizers', and for what is left
// `measure`, which is not called where nothing is. Says in the log how many came from where.
void complete_ranges(CleanNetwork& network, const MeasureRanges& measure);

// The ranges as a cache for this version. UserError (exit 2) for TensorRT 11 and later, which know no caches.
quant::CalibrationCache make_cache(const quant::TensorRanges& ranges, const quant::TensorRtVersion& version);

// TAO's --cal_json_file: {"tensor_scales": {NAME: RANGE}}, where a range is what 127 stands for; beside it, under
// "origins", where each comes from.
nlohmann::ordered_json ranges_json(const quant::TensorRanges& ranges);

// "1 tensor: a", "5 tensors: a, b, c and 2 more".
std::string some_of(const std::vector<std::string>& names, const std::string& what = "tensor");

}  // namespace octet::app

// Adaptive rounding: Nagel et al., "Up or Down? Adaptive Rounding for Post-Training Quantization", 2020.
#pragma once
#include <functional>
#include <vector>

#include "quant/adaround_options.h"
#include "train/weight_rounding.h"

namespace octet::train {

// round_layers() by gradient steps that choose for each weight between the codes below and above it. The same bytes
// again with the same images, options and threads.
std::vector<RoundedLayer> round_adaptively(ir::Graph& graph, data::Loader& loader,
                                           const quant::AdaRoundOptions& options,
                                           const std::function<void(const RoundedLayer&)>& progress = {});

}  // namespace octet::train

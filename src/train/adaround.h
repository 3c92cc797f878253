// AdaRound (Nagel et al., Up or Down? Adaptive Rounding for Post-Training Quantization, 2020): weights go to the code
// above or below, whichever makes the layer's results most like those of the float network. Rounding each to the
// nearest minimizes the error of the weights, which is another thing, and below 8 bits a worse one.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"
#include "quant/adaround_options.h"

namespace octet::train {

struct RoundedLayer {
  std::string node, weight;          // names of the layer, and of its constant
  int64_t weights = 0, moved = 0;    // that go to another code than the nearest
  double nearest = 0, adaptive = 0;  // mean squared error of its results against the float network's
};

// A Conv, ConvTranspose, Gemm or MatMul with quantized weights that nobody else reads.
bool rounds_adaptively(const ir::Node& node);

// Every such layer of `graph`, in its order: behind layers that are
// rounded already, its inputs are those of the quantized network and its targets those of the float one. What changes
// are the weights, which lie on their grid then; scales stay. `graph` has scales (frozen); its only input takes
// [N, C, H, W]. The same bytes again with the same images, options and threads. A layer that the optimization makes no
// better stays as it was. UserError where there is no image.
std::vector<RoundedLayer> round_adaptively(ir::Graph& graph, data::Loader& loader,
                                           const quant::AdaRoundOptions& options,
                                           const std::function<void(const RoundedLayer&)>& progress = {});

}  // namespace octet::train

// Weights that are rounded layer by layer, so that each layer gives what it gave in float: what AdaRound and GPTQ
// share.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "ir/graph.h"

namespace octet::train {

class LayerExamples;

struct RoundedLayer {
  std::string node, weight;         // names of the layer, and of its constant
  int64_t weights = 0, moved = 0;   // that go to another code than the nearest
  double nearest = 0, rounded = 0;  // squared error of its results against the float network's, by a common measure
};

// A Conv, ConvTranspose, Gemm or MatMul with quantized weights that nobody else reads.
bool rounds_by_results(const ir::Node& node);

// Codes that weights may have, as float32 without their zero point.
struct WeightGrid {
  at::Tensor weights, scale;   // of the weights' shape, and one that broadcasts to it
  at::Tensor lowest, highest;  // ends of the grid; broadcast too

  at::Tensor clamped(const at::Tensor& codes) const;
  at::Tensor nearest() const;
};

struct Rounding {
  at::Tensor codes;                // of the grid; not defined: the layer stays as it is
  double nearest = 0, chosen = 0;  // error with the nearest codes and with these
};
using RoundLayer = std::function<Rounding(const ir::Node& node, const WeightGrid& grid, LayerExamples& examples)>;

// Every such layer of `graph`, in its order: behind layers that are rounded already, its inputs are those of the
// quantized network and its targets those of the float one. What changes are the weights, which lie on their grid then;
// scales stay. `graph` and `images` as LayerExamples takes them. A layer that `round` makes no better gets the nearest
// codes.
std::vector<RoundedLayer> round_layers(ir::Graph& graph, data::Loader& loader, int64_t images, const RoundLayer& round,
                                       const std::function<void(const RoundedLayer&)>& progress);

// The layer by itself, from what it reads to what it makes.
ir::Graph layer_graph(const ir::Node& node);

}  // namespace octet::train

// What a quantized graph says and a calibration cache (calibration_cache.h) cannot.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::quant {

struct CacheLoss {
  std::string what;                // for people: "zero points: its codes are symmetric"
  std::vector<std::string> cases;  // one for each tensor, with what is particular to it
};

// The kinds of which the graph has at least one:
//  - weights whose scales are not those of each output channel's largest magnitude (another calibrator, one for the
//    tensor, averaged): TensorRT computes its own
//  - activations with a zero point, with unsigned codes, or with a scale for each channel
//  - tensors with quantizers of several scales, of which the cache has the largest
//  - placement: tensors that some node reads in floating point on purpose; with a range TensorRT may take INT8 there
std::vector<CacheLoss> cache_losses(const ir::Graph& quantized);

}  // namespace octet::quant

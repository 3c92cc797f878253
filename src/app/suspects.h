// What to do about the quantizers that cost most.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::app {

// What is known of a quantizer's tensor.
struct Suspicion {
  std::string quantizer;  // the FakeQuantize node
  double own_db = 0;      // signal to noise of its tensor and its codes
  double clipped = 0;     // share of elements beyond its codes
};

// One sentence for each: the setting that is most likely to help, judged by the tensor, its scale and the layer that
// reads it. `graph` has scales.
std::string advice(const ir::Graph& graph, const Suspicion& suspicion);

// Largest ratio between the ranges of two channels (axis `axis`) of a constant; 1 where there are fewer than two
// channels that are not zero.
double channel_range_ratio(const ir::Tensor& tensor, size_t axis);

}  // namespace octet::app

// Where the channels of a float network may be multiplied by positive factors: activations that share their channels,
// with all weighted nodes that make them and all that read them. Dividing channel c by s[c] in the weights and biases
// of the makers, and multiplying it by s[c] in the weights of the readers, leaves what the network computes as it is.
//
// A site begins at the output of a weighted node and grows over whatever computes s * f(x) of s * x for each channel:
// Relu, LeakyRelu, PRelu, pools, means over space, Resize, and the Add of two maps of equal shape, whose operands both
// belong to it, as do their makers. It is one only where nothing else touches these values: no output of the network,
// no other operator.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/channel_layout.h"

namespace octet::passes {

struct ChannelWeights : ChannelLayout {
  ir::Node* node = nullptr;
};

struct ChannelSite {
  size_t channels = 0;
  std::vector<ChannelWeights> makers, readers;  // a node may be both
  // Clips from 0 to a number, which keep no factor: the site is one only if these may become Relu.
  std::vector<ir::Node*> ends;
};

// In the order of their first makers. Precondition: inferred types.
std::vector<ChannelSite> channel_sites(const ir::Graph& graph);

}  // namespace octet::passes

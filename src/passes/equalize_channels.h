// Cross-layer equalization (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, 2019,
// section 4.1): at each site (channel_sites.h) channel c is divided by s[c] in the weights that make it and multiplied
// by s[c] in those that read it. With s[c] = sqrt(r1[c] / r2[c]), r the largest weight of the channel there, both have
// the same range but for a factor that all channels share, and one scale for many wastes no codes on the largest. Sites
// share nodes (expansion, depthwise convolution, projection), so rounds go on until nothing changes: then r of a chain
// is the paper's cube root of the product, to a power of two.
//
// Precondition: batch norms are folded (preparation_passes), types inferred. s is rounded to a power of two, so the
// float network computes the same bits before and after.
//
// A Clip from 0 to a number keeps no factor: each channel would need a limit of its own, with which no kernel of a
// convolution ends (docs/numerics.md), so its result would go through memory as floats. Its site stays as it is, unless
// the Clip may become a Relu: `relax_clips`, as the paper does with ReLU6, which changes the network where activations
// reached that number, or `peaks` that show that they did not.
//
// Half of a bias counts as a weight in r1. Else a channel of tiny weights and an ordinary bias, which training leaves
// where a batch norm gives a constant, would grow until all other channels of its tensor have no codes left.
// Test: tests/passes/equalize_channels_test.cc.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

struct EqualizeOptions {
  bool relax_clips = false;
  // The largest value that was seen of tensors, by name: a Clip that ends above what it reads becomes a Relu.
  std::map<std::string, float> peaks;
};

struct Equalized {
  int pairs = 0;  // sites whose channels changed: mostly a pair of layers, with residual sums some more
  // The largest range of a channel over the smallest, in the worst tensor of weights of all sites; 1 without sites.
  double ratio_before = 1, ratio_after = 1;
  std::vector<std::string> clips;  // for whose sake sites stayed as they are
  // By the output of a weighted node: what the values of each channel were divided by, as the exponent of 2.
  std::map<std::string, std::vector<int>> divided;

  // "equalized 35 pairs, largest channel range ratio 1.2e+06 -> 14; 3 stay ..."
  std::string text() const;
};

Equalized equalize_channels(ir::Graph& graph, const EqualizeOptions& options = {});

// The tensors that Clips read which are in the way: those to find the peaks of.
std::vector<std::string> clipped_tensors(const ir::Graph& graph);

}  // namespace octet::passes

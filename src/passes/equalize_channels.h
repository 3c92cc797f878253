// Cross-layer equalization (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, 2019,
// section 4.1): where the outputs of a weighted node reach another one alone, through nodes that keep a positive factor
// of a channel, channel c may be divided by s[c] in the first and multiplied by it in the second. With
// s[c] = sqrt(r1[c] / r2[c]), r the largest weight of the channel, both have the same range, and one scale for many
// channels wastes no codes on the largest.
//
// Precondition: batch norms are folded (preparation_passes). s is rounded to a power of two, so the float network
// computes the same bits before and after. A Clip that ends at a number keeps no factor; with `relax_clips` (as the
// paper does with ReLU6) it becomes a Relu, which changes the network where activations reached that number.
// Test: tests/passes/equalize_channels_test.cc.
#pragma once
#include "ir/graph.h"

namespace octet::passes {

struct EqualizeOptions {
  bool relax_clips = false;
};

// Returns the number of pairs of nodes whose channels changed.
int equalize_channels(ir::Graph& graph, const EqualizeOptions& options = {});

}  // namespace octet::passes

// What the batch norms of a float network tell of its activations without an image: behind one, channel c has the mean
// beta[c] and the standard deviation |gamma[c]| (Nagel et al., Data-Free Quantization Through Weight Equalization and
// Bias Correction, 2019, section 4.2.1). From there means go on through activations, sums, gates and layers without a
// batch norm.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

struct ChannelMoments {
  std::vector<double> mean, deviation;
};

// Of the outputs of all BatchNormalizations with constant statistics, by name. To be asked before they are folded: the
// output of the folded node takes the name over (fold_batch_norm.h).
std::map<std::string, ChannelMoments> batch_norm_moments(const ir::Graph& graph);

// The means of all tensors [N, C, ...] that follow from `known`, by name and channel; quantizers are looked through.
// A tensor is a set of values drawn from normal distributions, each channel by itself, on which every element-wise
// operator computes what it does; so a Relu's mean is the paper's closed form but for the drawing (1 % of a deviation).
// A mean over space has no variance, a MaxPool's neighbors are taken to be equal, and padding to be the mean; what
// reads anything else is not known.
std::map<std::string, std::vector<double>> channel_means(const ir::Graph& graph,
                                                         const std::map<std::string, ChannelMoments>& known);

}  // namespace octet::passes

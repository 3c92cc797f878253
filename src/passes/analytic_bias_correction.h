// Analytic bias correction (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias Correction, 2019,
// section 4.2): quantization changes the weights W of a layer by E, which moves the mean of each output channel by
// E * mean(x), and the bias takes that back. mean(x) follows from the batch norms (channel_moments.h), so no image is
// needed; what quantization of activations does is left to empirical correction (app/bias_correction.h).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/channel_moments.h"

namespace octet::passes {

struct AnalyticCorrections {
  std::map<std::string, std::vector<double>>
      shifts;                        // for shift_biases(): by the name of a node, for each output channel
  std::vector<std::string> unknown;  // nodes that read what no batch norm tells of
};

// Of nodes_to_correct(quantized) (shift_biases.h). `quantized` has scales; `known`: batch_norm_moments() of the network
// before its batch norms were folded, `divided`: what equalization did to them (Equalized).
AnalyticCorrections analytic_bias_corrections(const ir::Graph& quantized, std::map<std::string, ChannelMoments> known,
                                              const std::map<std::string, std::vector<int>>& divided = {});

}  // namespace octet::passes

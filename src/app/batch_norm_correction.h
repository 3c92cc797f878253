// quant.bias_correction: analytic (passes/analytic_bias_correction.h) around the passes that quantize a network.
#pragma once
#include <map>
#include <string>

#include "ir/graph.h"
#include "passes/channel_moments.h"
#include "passes/pipelines.h"
#include "quant/options.h"

namespace octet::app {

class BatchNormCorrection {
 public:
  // Reads the batch norms of the float network, which the passes fold. Does nothing where `options` do not ask for it.
  // UserError where there are none.
  BatchNormCorrection(const ir::Graph& network, const quant::QuantOptions& options);

  // Corrects the biases, when weights have their scales.
  void apply(ir::Graph& quantized, const passes::PlacementRecord& placed) const;

 private:
  bool wanted_;
  std::map<std::string, passes::ChannelMoments> known_;
};

}  // namespace octet::app

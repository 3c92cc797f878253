#include "app/batch_norm_correction.h"

#include "app/bias_correction.h"
#include "app/clean_network.h"
#include "base/error.h"
#include "base/log.h"
#include "passes/analytic_bias_correction.h"

namespace octet::app {

BatchNormCorrection::BatchNormCorrection(const ir::Graph& network, const quant::QuantOptions& options)
    : wanted_(options.bias_correction == quant::BiasCorrection::kAnalytic) {
  if (!wanted_) return;
  known_ = passes::batch_norm_moments(network);
  if (known_.empty())
    fail(
        "quant.bias_correction: analytic takes the means of activations from batch norms, and the network has none: "
        "export it with them (torch.onnx.export(..., training=TrainingMode.PRESERVE, do_constant_folding=False)), or "
        "take empirical, by images");
}

void BatchNormCorrection::apply(ir::Graph& quantized, const passes::PlacementRecord& placed) const {
  if (!wanted_) return;
  const passes::AnalyticCorrections found = passes::analytic_bias_corrections(quantized, known_, placed.divided);
  apply_corrections(quantized, found.shifts);
  log_info("corrected the biases of ", found.shifts.size(), " nodes by ", known_.size(), " batch norms");
  if (!found.unknown.empty())
    log_info("no batch norm tells what these read, so their biases stay: ", some_of(found.unknown, "node"));
}

}  // namespace octet::app

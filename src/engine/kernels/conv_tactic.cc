#include "engine/kernels/conv_tactic.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {

ConvShare tactic_share(const ConvTactic& tactic, const ConvArgs& args, int part, int parts) {
  return tactic.share ? tactic.share(args, part, parts) : conv_share(args, part, parts);
}

double conv_macs(const ConvArgs& args) {
  const ConvGeometry& g = args.geometry;
  const QTensor& out = args.epilogue.out;
  const double outputs = static_cast<double>(out.n * out.h * out.w) * static_cast<double>(g.out_channels);
  return outputs * static_cast<double>(g.kernel_h * g.kernel_w) * static_cast<double>(g.in_channels / g.groups);
}

double cost_at_rate(const ConvArgs& args, int threads, double macs_per_cycle) {
  return conv_macs(args) / (macs_per_cycle * cpu_model().cycles_per_us * threads);
}

}  // namespace octet::kernels

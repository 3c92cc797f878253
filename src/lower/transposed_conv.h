// ConvTranspose as ordinary convolutions. The output pixels whose rows and columns leave the same remainders when
// divided by the strides (a phase) read neighboring pixels of the input, through every stride-th tap in reverse order:
// a convolution of stride 1. No products with the zeros that a stretched input would have.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lower/weighted.h"

namespace octet::lower {

// `geometry` is that of the transposed convolution; out = in * stride + tap * dilation - pad. UserError for what the
// engine has no kernel for at all (rank, negative pads, weights that are computed).
Weighted read_conv_transpose(const ir::Node& node);

// Weights [in][out / groups][taps] as a convolution has them, [out][in / groups][taps].
std::vector<int8_t> convolution_order(const kernels::ConvGeometry& transposed, const std::vector<int8_t>& codes);

struct ConvPhase {
  int64_t row = 0, column = 0;  // of its first pixel in the output; the next ones follow in the distance of the strides
  Weighted weighted;            // the convolution of stride 1 that makes it
  // Which row and column of the taps lies at each row and column of the window; -1: none, so the weights are zero. A
  // phase that no tap reaches has a window of one such place, and thus the bias alone.
  std::vector<int64_t> tap_rows, tap_columns;
};
std::vector<ConvPhase> conv_phases(const Weighted& transposed);
// Why the phases cannot run as convolutions; empty where they can.
std::string phases_problem(const Weighted& transposed);

// The weights of one phase; `input` are the parameters of what it reads.
QuantizedWeights phase_weights(const ConvPhase& phase, const Weighted& transposed, const QuantizedWeights& whole,
                               const numerics::QuantParams& input);

}  // namespace octet::lower

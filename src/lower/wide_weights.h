// Weights whose codes minus their zero point need nine bits.
#pragma once
#include "ir/graph.h"

namespace octet::lower {

// u8 weights with a zero point other than 128 have q - z in -255..255, and the kernels multiply by s8. Such weights are
// the sum of two s8 matrices with zero point 0, so a Conv or Gemm over codes becomes one over the same codes twice,
// concatenated along the channels: the accumulators are the same integers. Done for up to kMaxGroups groups; beyond
// that (depthwise), and where a weight is 255 steps from its zero point, the layer stays as it is and runs in FP32.
// Requires types; leaves those of new values set. Returns the number of layers that were split.
inline constexpr int64_t kMaxGroups = 8;
int split_wide_weights(ir::Graph& graph);

}  // namespace octet::lower

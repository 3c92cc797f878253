// The tactics of the AMX tiles besides "direct"; each takes the convolutions its `applies` names.
#pragma once
#include "engine/kernels/conv_tactic.h"

namespace octet::kernels {

// The weights as they are, with a fixed register blocking.
ConvTactic tiles_2x2_tactic();
ConvTactic tiles_4x1_tactic();
ConvTactic tiles_1x4_tactic();
// Stride-2 convolutions on 4-byte pixels: squares of 2x2 pixels become one pixel of 16 bytes.
ConvTactic folded_tactic();
// 3 columns of taps, weights from the L2 cache: K in slices that fit the L1 cache.
ConvTactic sliced_tactic();
// A stride and short rows: the pixels of each phase of the stride in a plane of their own.
ConvTactic planes_tactic();

}  // namespace octet::kernels

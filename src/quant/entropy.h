// Entropy calibration: the threshold at which the clipped and quantized distribution diverges least from the original.
#pragma once
#include "quant/histogram.h"

namespace octet::quant {

// For every threshold at the upper edge of bin i - 1 of 2048 (i > levels): P is the histogram up to there with all mass
// beyond it added to the last bin; Q is the same histogram, without that mass, merged into levels + 1 codes, each
// code's mass spread evenly over its bins that are not empty. Takes the last i with the smallest KL(P || Q), both
// normalized.
// - The bin at zero takes the count of its neighbor (and exact zeros are left out), as in NVIDIA's implementations.
// - An empty last bin that receives the tail counts as occupied, where they get an infinite divergence and silently
// drop
//   the candidate.
// - Thresholds with a mean squared error above `guard` times that of the full range are left out (guard 0: none is).
float entropy_amax(const Histogram& histogram, int levels, double guard);

}  // namespace octet::quant

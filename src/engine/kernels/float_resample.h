// Resize of NHWC images by several pixels an axis, as cubic interpolation has them.
#pragma once
#include <cstdint>

#include "engine/kernels/tensor.h"

namespace octet::kernels {

// Of one axis: element i of the output is the sum over k of weight[i * taps + k] * in[index[i * taps + k]].
struct ResampledAxis {
  int64_t taps = 1;
  const int32_t* index = nullptr;
  const float* weight = nullptr;
};

// The rows are mixed first, then the columns, each sum in the order of its taps.
struct FloatResampleArgs {
  const float* in = nullptr;
  float* out = nullptr;
  int64_t n = 1, in_h = 1, in_w = 1, out_h = 1, out_w = 1, c = 1;
  ResampledAxis y, x;
  float* row = nullptr;  // in_w * c floats of this thread
};
// Rows of the output, counted over n * out_h.
void float_resample(const FloatResampleArgs& args, Range rows);

}  // namespace octet::kernels

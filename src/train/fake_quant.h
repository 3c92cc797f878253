// Fake quantization with the straight-through gradient. The forward values are those of numerics::fake_quantize bit for
// bit; the gradient passes unchanged where the code is not clipped, and is 0 elsewhere.
//
// A scale s may learn, too. With q the code and r = x / s, both without the zero point, over the elements of a scale:
//  LSQ (Esser et al. 2020, arXiv 1902.08153):  ds = g / sqrt(n qmax) * sum of dy * (q - r where not clipped, else q)
//    for n elements; the root keeps the steps of scales and weights in proportion.
//  LSQ+ (Bhalgat et al. 2020, arXiv 2004.09576) trains an offset b beside s, where x = b is coded as 0; the zero point
//  is
//    -b / s, rounded, as integers want it. db = g / sqrt(n qmax) * sum of dy where clipped; ds as LSQ's, but where
//    clipped q counts from 0: what is clipped is given as s q + b.
//  PACT (Choi et al. 2018, arXiv 1805.06085), whose parameter is the clip a = s qmax:  da = sum of dy * sign(q) where
//    |r| is at least the code that it clips to, and there alone, so rounding has no part in it. ds = da / qmax: then a
//    step on s at some rate moves a by what a step on a would.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "quant/scale_training.h"

namespace octet::train {

struct FakeQuantOptions {
  int64_t axis = -1;  // of a scale with several elements
  int32_t qmin = -128, qmax = 127;
  at::Tensor zero_point;  // integer, one element or as many as the scale; undefined: 0
  // Give code - zero_point instead of the number; then the scale's gradient is still that of the number, and whoever
  // multiplies by the scale takes it as a constant.
  bool codes = false;
  quant::ScaleGradient gradient = quant::ScaleGradient::kNo;  // of the scale
  at::Tensor offset;  // of LSQ+, float32, as many as the scale; the zero point follows from it
};

// x: floating, any shape; scale: float32, one element or one per index of `axis`, > 0. The result has x's strides where
// it is dense, and the type `result` (codes: any floating type; numbers: that of x, usually).
at::Tensor fake_quantize(const at::Tensor& x, const at::Tensor& scale, const FakeQuantOptions& options,
                         at::ScalarType result);

// What a learned offset stands for: round(-offset / scale), in qmin .. qmax; float32.
at::Tensor zero_point_of(const at::Tensor& offset, const at::Tensor& scale, const FakeQuantOptions& options);

// The offset that stands for a zero point.
at::Tensor offset_of(const at::Tensor& zero_point, const at::Tensor& scale);

// What a learned scale stands for: a step of the optimizer may take it below zero, where its magnitude counts.
at::Tensor usable_scale(const at::Tensor& scale);

// The scale that just covers x: the largest magnitude divided by the codes on its side of the zero point (127 for s8,
// 255 for u8), at least numerics::kMinScale. One element, or one per index of `axis`, as `like`.
at::Tensor current_scale(const at::Tensor& x, const at::Tensor& like, const FakeQuantOptions& options);

// scale = (1 - c) * scale + c * current_scale(x), in place. A tensor of zeros leaves it as it is; scales of channels
// are at least numerics::kLeastChannelScale times the largest.
void update_scale(const at::Tensor& scale, const at::Tensor& x, const FakeQuantOptions& options, float c);

}  // namespace octet::train

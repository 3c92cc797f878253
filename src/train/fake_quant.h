// Fake quantization with the straight-through gradient. The forward values are those of numerics::fake_quantize bit for
// bit; the gradient passes unchanged where the code is not clipped, and is 0 elsewhere.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace octet::train {

struct FakeQuantOptions {
  int64_t axis = -1;  // of a scale with several elements
  int32_t qmin = -128, qmax = 127;
  at::Tensor zero_point;  // integer, one element or as many as the scale; undefined: 0
  bool codes = false;     // give code - zero_point instead of the number
  bool learned = false;   // the scale gets its LSQ gradient too, times 1 / sqrt(elements a scale * qmax)
};

// x: floating, any shape; scale: float32, one element or one per index of `axis`, > 0. The result has x's strides where
// it is dense, and the type `result` (codes: any floating type; numbers: that of x, usually).
at::Tensor fake_quantize(const at::Tensor& x, const at::Tensor& scale, const FakeQuantOptions& options,
                         at::ScalarType result);

// The scale that just covers x: the largest magnitude divided by the codes on its side of the zero point (127 for s8,
// 255 for u8), at least numerics::kMinScale. One element, or one per index of `axis`, as `like`.
at::Tensor current_scale(const at::Tensor& x, const at::Tensor& like, const FakeQuantOptions& options);

// scale = (1 - c) * scale + c * current_scale(x), in place.
void update_scale(const at::Tensor& scale, const at::Tensor& x, const FakeQuantOptions& options, float c);

}  // namespace octet::train

// The arithmetic of quantization: the only home of rounding, saturation, scales and requantization. Trainer, passes,
// exporter, reference kernels and every vector kernel are tested against these functions bit for bit. Everything is
// scalar, exact float32/int32, no FMA (the project is compiled with -ffp-contract=off), round to nearest even
// (MXCSR default). docs/numerics.md states the contract in words. Follows ONNX QuantizeLinear / DequantizeLinear.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace octet::numerics {

// One tensor's (or one channel's) quantization. scale > 0 and finite; qmin <= zero_point <= qmax.
struct QuantParams {
  float scale = 1.0f;
  int32_t zero_point = 0;
  int32_t qmin = -128;
  int32_t qmax = 127;
  friend bool operator==(const QuantParams&, const QuantParams&) = default;
};

// Smallest scale that is used: an all-zero tensor gets it, so that division stays defined.
inline constexpr float kMinScale = 1e-12f;

// The smallest scale of a channel of weights, relative to the largest of the tensor. A dead channel (all weights 0, or
// nearly so after batch-norm folding) would otherwise get a scale so small that its bias does not fit the int32
// accumulator; at this floor its weights still contribute less than the rounding of the shared output scale.
inline constexpr float kLeastChannelScale = 1.0f / 16384;

// Round to nearest, ties to even, as float.
inline float round_half_even(float x) {
  return std::nearbyintf(x);
}

// Clamps before the conversion, so that any float (also an infinity) has a defined result. NaN gives `if_nan`.
inline int32_t round_to_int(float x, int32_t low, int32_t high, int32_t if_nan) {
  if (std::isnan(x)) return if_nan;
  const float r = round_half_even(x);
  if (r <= static_cast<float>(low)) return low;
  if (r >= static_cast<float>(high)) return high;
  return static_cast<int32_t>(r);
}

// q = clamp(rne(x / scale) + zero_point, qmin, qmax). A division, never a reciprocal; NaN gives the zero point.
inline int32_t quantize(float x, const QuantParams& p) {
  return round_to_int(x / p.scale, p.qmin - p.zero_point, p.qmax - p.zero_point, 0) + p.zero_point;
}

inline float dequantize(int32_t q, const QuantParams& p) {
  return static_cast<float>(q - p.zero_point) * p.scale;
}

inline float fake_quantize(float x, const QuantParams& p) {
  return dequantize(quantize(x, p), p);
}

// 1 where the straight-through estimator passes the gradient: x is not clipped. NaN: 0.
inline bool inside_range(float x, const QuantParams& p) {
  if (std::isnan(x)) return false;
  const float r = round_half_even(x / p.scale);
  return r >= static_cast<float>(p.qmin - p.zero_point) && r <= static_cast<float>(p.qmax - p.zero_point);
}

// Symmetric scale of a range [-amax, amax] onto `levels` positive codes (127 for s8, 255 for u8).
inline float scale_from_amax(float amax, int levels = 127) {
  return std::max(amax / static_cast<float>(levels), kMinScale);
}

// Bias in units of the accumulator: rne(bias / (scale_x * scale_w)), saturated to int32.
inline int32_t quantize_bias(float bias, float scale_x, float scale_w) {
  const float scale = scale_x * scale_w;
  const double q = std::nearbyint(static_cast<double>(bias / scale));
  if (std::isnan(q)) return 0;
  return static_cast<int32_t>(std::clamp(q, -2147483648.0, 2147483647.0));
}

// False where quantize_bias() gives the end of int32 for want of room.
inline bool bias_fits(float bias, float scale_x, float scale_w) {
  return std::abs(bias / (scale_x * scale_w)) < 2147483648.0f;
}

// m = fl32(fl32(scale_x * scale_w) / scale_y).
inline float requantize_multiplier(float scale_x, float scale_w, float scale_y) {
  return (scale_x * scale_w) / scale_y;
}

// q_y = clamp(rne(float(acc) * m) + zero_point, qmin, qmax): one multiplication, no FMA across it.
inline int32_t requantize(int32_t acc, float multiplier, int32_t zero_point, int32_t qmin, int32_t qmax) {
  return round_to_int(static_cast<float>(acc) * multiplier, qmin - zero_point, qmax - zero_point, 0) + zero_point;
}

// A convolution whose float result meets a residual before the one Q (rounds once):
// q_y = clamp(rne(float(acc) * m + float(q_r - z_r) * r) + z_y), r = fl32(scale_r / scale_y); mul, mul, add.
inline int32_t requantize_with_residual(int32_t acc, float multiplier, int32_t residual_minus_zero_point,
                                        float residual_multiplier, int32_t zero_point, int32_t qmin, int32_t qmax) {
  const float sum =
      static_cast<float>(acc) * multiplier + static_cast<float>(residual_minus_zero_point) * residual_multiplier;
  return round_to_int(sum, qmin - zero_point, qmax - zero_point, 0) + zero_point;
}

// Sum of two quantized tensors: clamp(rne(float(q_a - z_a) * a + float(q_b - z_b) * b) + z_y), a = fl32(scale_a /
// scale_y).
inline int32_t add_quantized(int32_t a_minus_zero_point, float a_multiplier, int32_t b_minus_zero_point,
                             float b_multiplier, int32_t zero_point, int32_t qmin, int32_t qmax) {
  const float sum =
      static_cast<float>(a_minus_zero_point) * a_multiplier + static_cast<float>(b_minus_zero_point) * b_multiplier;
  return round_to_int(sum, qmin - zero_point, qmax - zero_point, 0) + zero_point;
}

// Average of `count` codes, from the exact int32 sum of (q - z_x): clamp(rne(float(sum) * m) + z_y) with
// m = fl32(scale_x / fl32(float(count) * scale_y)).
inline float average_multiplier(float scale_x, int32_t count, float scale_y) {
  return scale_x / (static_cast<float>(count) * scale_y);
}

}  // namespace octet::numerics

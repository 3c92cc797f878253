// Point-wise training kernels: what stands between two convolutions, forward and backward, in one pass each. Plain
// functions on pointers, no LibTorch. Compiled once per instruction set (ops_kernels_<isa>.cc), chosen at run time; all
// give the same bits.
//
// A tensor is a matrix of rows (N*H*W) by channels, the NHWC layout. T is float or bf16 (as uint16_t); all arithmetic
// is float32 without FMA. A mask holds one bit an element, in words of 16 channels, mask_words(channels) words a row.
#pragma once
#include <cstdint>

namespace octet::train::kernels {

inline int64_t mask_words(int64_t channels) {
  return (channels + 15) / 16;
}

// y = x * multiplier + offset + residual * residual_scale, clamped to [lower, upper], then quantized:
// out = clamp(rne(y / scale), low, high) * out_scale. The mask bit is set where the gradient passes: lower < y < upper
// and the code is not clipped. Equal to numerics::fake_quantize bit for bit; NaN gives 0.
template <typename T>
struct Forward {
  int64_t channels = 0;
  const T* x = nullptr;
  const float* multiplier = nullptr;  // per channel; null: y = x
  const float* offset = nullptr;      // per channel; null with multiplier
  const T* residual = nullptr;        // null: none
  float residual_scale = 1;
  float lower = 0, upper = 0;
  bool clamp = false;
  bool quantize = false;
  float scale = 1, low = 0, high = 0;  // low, high: of code - zero_point
  float out_scale = 1;                 // 1: codes; scale: numbers
  T* out = nullptr;
  uint16_t* mask = nullptr;  // null: not wanted
};

// g = grad where the mask is set (null: everywhere), else 0.
// grad_x = g * from_grad + (x - center) * from_x + constant; without from_x the last two fall away; without from_grad
// grad_x = g * factor. grad_residual = g * residual_factor.
template <typename T>
struct Backward {
  int64_t channels = 0;
  const T* grad = nullptr;
  const uint16_t* mask = nullptr;
  const T* x = nullptr;
  const float *center = nullptr, *from_grad = nullptr, *from_x = nullptr, *constant = nullptr;  // per channel
  float factor = 1, residual_factor = 1;
  T* grad_x = nullptr;         // null: not wanted
  T* grad_residual = nullptr;  // null: not wanted
};

// A depthwise convolution: x [images, in_h, in_w, channels], grad (of its result) [images, out_h, out_w, channels].
template <typename T>
struct DepthwiseGradient {
  int64_t channels = 0, in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  const T *x = nullptr, *grad = nullptr;
};

template <typename T>
struct Table {
  void (*forward)(const Forward<T>&, int64_t row_begin, int64_t row_end);
  // Adds to sum[c] the x - center[c], and to square[c] its square, over the rows.
  void (*statistics)(const T* x, int64_t channels, const float* center, int64_t row_begin, int64_t row_end, float* sum,
                     float* square);
  // Adds to sum[c] the g, and to product[c] (unless null) the g * (x - center[c]), over the rows.
  void (*gradient_sums)(const Backward<T>&, int64_t row_begin, int64_t row_end, float* sum, float* product);
  void (*backward)(const Backward<T>&, int64_t row_begin, int64_t row_end);
  // Adds the gradient of the weights to sum [kernel_h, kernel_w, channels], of which [channel_begin, channel_end) is
  // touched, over some images. For each weight, outputs are added one by one, row by row.
  void (*depthwise_gradient)(const DepthwiseGradient<T>&, int64_t image_begin, int64_t image_end, int64_t channel_begin,
                             int64_t channel_end, float* sum);
};

using Bf16 = uint16_t;

struct Tables {
  Table<float> f32;
  Table<Bf16> bf16;
};

// The best for this CPU.
const Tables& tables();
template <typename T>
const Table<T>& table();
template <>
inline const Table<float>& table<float>() {
  return tables().f32;
}
template <>
inline const Table<Bf16>& table<Bf16>() {
  return tables().bf16;
}

// One per instruction set; for tests and tables().
const Tables& tables_base();
const Tables& tables_avx2();
const Tables& tables_avx512();

}  // namespace octet::train::kernels

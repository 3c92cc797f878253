// The gradient of the weights of a depthwise convolution. Included by ops_kernels_body.h alone, under its rules.
#pragma once
#include "train/kernel_vectors.h"
#include "train/ops_kernels.h"

namespace octet::train::kernels {
namespace {

// Taps of a row whose sums stay in registers.
#if defined(__AVX512F__)
constexpr int kTapsAtOnce = 7;
#else
constexpr int kTapsAtOnce = 5;
#endif

// The outputs of a row, [begin, end), for which tap `k` of `stride` * output - `pad` + k * `dilation` is in the image.
struct Outputs {
  int64_t begin = 0, end = 0;
};
OCTET_INLINE Outputs outputs_of_tap(int64_t k, int64_t size, int64_t outputs, int64_t stride, int64_t dilation,
                                    int64_t pad) {
  const int64_t offset = k * dilation - pad, last = size - 1 - offset;
  const int64_t begin = offset >= 0 ? 0 : (stride - 1 - offset) / stride;
  int64_t end = last < 0 ? 0 : last / stride + 1;
  if (end > outputs) end = outputs;
  return {begin < end ? begin : end, end};
}

// Taps [first, first + K) of a row of the window, over one row of outputs; `x`: the row of the image that they see.
template <typename T, int K>
OCTET_INLINE void add_row(const DepthwiseGradient<T>& d, const T* x, const T* grad, int64_t first, int n, float* sum) {
  const int64_t step = d.stride_w * d.channels, tap_step = d.dilation_w * d.channels;
  Vec sums[K];
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) sums[k] = load(sum + k * d.channels, n);
  // Where all taps are in the image: offsets grow with the tap.
  int64_t begin = 0, end = d.out_w;
  Outputs of_tap[K];
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
    of_tap[k] = outputs_of_tap(first + k, d.in_w, d.out_w, d.stride_w, d.dilation_w, d.pad_left);
    if (of_tap[k].begin > begin) begin = of_tap[k].begin;
    if (of_tap[k].end < end) end = of_tap[k].end;
  }
  if (begin > end) begin = end;
  const T* tap = x + (first * d.dilation_w - d.pad_left) * d.channels;
  const auto at_border = [&](int64_t o) {
    const Vec g = load(grad + o * d.channels, n);
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
      if (o >= of_tap[k].begin && o < of_tap[k].end) sums[k] += g * load(tap + o * step + k * tap_step, n);
  };
  for (int64_t o = 0; o < begin; ++o) at_border(o);
  for (int64_t o = begin; o < end; ++o) {
    const Vec g = load(grad + o * d.channels, n);
    const T* seen = tap + o * step;
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) sums[k] += g * load(seen + k * tap_step, n);
  }
  for (int64_t o = end; o < d.out_w; ++o) at_border(o);
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) store(sum + k * d.channels, sums[k], n);
}

// add_row() for `taps` of them, 1 to K.
template <int K, typename T>
OCTET_INLINE void add_rows(int64_t taps, const DepthwiseGradient<T>& d, const T* x, const T* grad, int64_t first, int n,
                           float* sum) {
  if (taps == K) return add_row<T, K>(d, x, grad, first, n, sum);
  if constexpr (K > 1) add_rows<K - 1>(taps, d, x, grad, first, n, sum);
}

template <typename T>
OCTET_INLINE void add_row_of_taps(const DepthwiseGradient<T>& d, const T* x, const T* grad, int n, float* sum) {
  for (int64_t first = 0; first < d.kernel_w;) {
    int64_t taps = d.kernel_w - first;
    if (taps > kTapsAtOnce) taps = taps > kTapsAtOnce + 3 ? kTapsAtOnce : (taps + 1) / 2;
    float* const to = sum + first * d.channels;
    add_rows<kTapsAtOnce>(taps, d, x, grad, first, n, to);
    first += taps;
  }
}

template <typename T>
void depthwise_gradient(const DepthwiseGradient<T>& d, int64_t image_begin, int64_t image_end, int64_t channel_begin,
                        int64_t channel_end, float* sum) {
  const int64_t in_row = d.in_w * d.channels, out_row = d.out_w * d.channels;
  for (int64_t c = channel_begin; c < channel_end; c += kLanes) {
    const int n = lanes_left(channel_end, c);
    for (int64_t image = image_begin; image < image_end; ++image) {
      const T* const x = d.x + image * d.in_h * in_row + c;
      const T* grad = d.grad + image * d.out_h * out_row + c;
      for (int64_t o = 0; o < d.out_h; ++o, grad += out_row)
        for (int64_t k = 0; k < d.kernel_h; ++k) {
          const int64_t row = o * d.stride_h - d.pad_top + k * d.dilation_h;
          if (row < 0 || row >= d.in_h) continue;
          float* const to = sum + k * d.kernel_w * d.channels + c;
          // Whole vectors apart: then the compiler knows that all lanes exist.
          if (n == kLanes)
            add_row_of_taps(d, x + row * in_row, grad, kLanes, to);
          else
            add_row_of_taps(d, x + row * in_row, grad, n, to);
        }
    }
  }
}

}  // namespace
}  // namespace octet::train::kernels

// Which windows of a pool meet the image, along one axis.
#pragma once
#include <cstdint>

namespace octet {

// The first of `outputs` windows of which no tap lies in [0, size), or -1 where every window has one. Window o has its
// taps at o * stride - pad + k * dilation for k in [0, kernel); those of a dilated window may leap over a small image.
// All sizes are positive, pad is not negative, products fit into int64. Time: at most pad / stride windows.
inline int64_t first_window_outside(int64_t outputs, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad,
                                    int64_t size) {
  int64_t o = 0;
  for (; o < outputs && o * stride < pad; ++o) {
    const int64_t before = pad - o * stride, tap = (before + dilation - 1) / dilation;
    if (tap >= kernel || tap * dilation - before >= size) return o;
  }
  // The others begin in the image or behind it.
  if (o == outputs || (outputs - 1) * stride - pad < size) return -1;
  const int64_t behind = (size + pad + stride - 1) / stride;
  return behind > o ? behind : o;
}

}  // namespace octet

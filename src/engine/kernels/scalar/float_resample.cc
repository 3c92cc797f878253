#include "engine/kernels/float_resample.h"

#include <algorithm>

namespace octet::kernels {
namespace {

void add_scaled(float* __restrict to, const float* __restrict from, float weight, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += weight * from[i];
}

}  // namespace

void float_resample(const FloatResampleArgs& a, Range rows) {
  const int64_t in_row = a.in_w * a.c;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t y = r % a.out_h;
    const float* const image = a.in + r / a.out_h * a.in_h * in_row;
    std::fill_n(a.row, in_row, 0.0f);
    for (int64_t k = y * a.y.taps; k < (y + 1) * a.y.taps; ++k)
      add_scaled(a.row, image + a.y.index[k] * in_row, a.y.weight[k], in_row);
    for (int64_t x = 0; x < a.out_w; ++x) {
      float* const out = a.out + (r * a.out_w + x) * a.c;
      std::fill_n(out, a.c, 0.0f);
      for (int64_t k = x * a.x.taps; k < (x + 1) * a.x.taps; ++k)
        add_scaled(out, a.row + a.x.index[k] * a.c, a.x.weight[k], a.c);
    }
  }
}

}  // namespace octet::kernels

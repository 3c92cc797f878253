// LayerNormFunction for any vector width (see float_functions.h). Whatever the width, a sum has sixteen parts, of the
// elements i, i + 16 ..., and the same bits.
#pragma once
#include "engine/kernels/float_functions.h"
#include "engine/kernels/float_ops.h"

namespace octet::kernels {
namespace {

// The sum of value(i, lanes) over i = 0, kLanes ... n; `value` gives zero in the lanes behind `lanes`.
template <typename F, typename Value>
OCTET_INLINE float sum_of_parts(int64_t n, Value value) {
  constexpr int64_t kParts = 16, kVectors = kParts / F::kLanes;
  typename F::V sums[kVectors];
  for (auto& sum : sums) sum = F::broadcast(0);
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) sums[v] = sums[v] + value(i + v * F::kLanes, F::kLanes);
  }
#pragma GCC unroll 16
  for (int64_t v = 0; v < kVectors; ++v) {
    const int64_t at = i + v * F::kLanes, lanes = n - at < F::kLanes ? n - at : F::kLanes;
    if (lanes > 0) sums[v] = sums[v] + value(at, lanes);
  }
  float parts[kParts];
  for (int64_t v = 0; v < kVectors; ++v) F::store(parts + v * F::kLanes, sums[v]);
  for (int64_t half = kParts / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) parts[lane] += parts[lane + half];
  return parts[0];
}

// The first `lanes` elements, zero behind them.
template <typename F>
OCTET_INLINE typename F::V first_of(typename F::V v, int64_t lanes) {
  if (lanes == F::kLanes) return v;
  float elements[F::kLanes];
  F::store(elements, v);
  return F::load_first(elements, lanes);
}

template <typename F>
void layer_norm(const LayerNormArgs& a, Range lines) {
  using V = typename F::V;
  const float count = static_cast<float>(a.length);
  for (int64_t line = lines.begin; line < lines.end; ++line) {
    const float* in = a.in + line * a.length;
    float* out = a.out + line * a.length;
    const float mean =
        sum_of_parts<F>(a.length, [&](int64_t i, int64_t lanes) { return F::load_first(in + i, lanes); }) / count;
    const V middle = F::broadcast(mean);
    const float squares = sum_of_parts<F>(a.length, [&](int64_t i, int64_t lanes) {
      const V centered = first_of<F>(F::load_first(in + i, lanes) - middle, lanes);
      return centered * centered;
    });
    const float factor = 1.0f / __builtin_sqrtf(squares / count + a.epsilon);
    if (a.means != nullptr) a.means[line] = mean, a.inverses[line] = factor;
    const V inverse = F::broadcast(factor);
    for (int64_t i = 0; i < a.length; i += F::kLanes) {
      const int64_t lanes = a.length - i < F::kLanes ? a.length - i : F::kLanes;
      const V normal = (F::load_first(in + i, lanes) - middle) * inverse;
      F::store_first(out + i, normal * F::load_first(a.scale + i, lanes) + F::load_first(a.shift + i, lanes), lanes);
    }
  }
}

}  // namespace
}  // namespace octet::kernels

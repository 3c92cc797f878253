// SoftmaxFunction for any vector width (see float_functions.h). Whatever the width, a sum along contiguous elements has
// sixteen parts, of the elements i, i + 16 ..., and the same bits.
#pragma once
#include <limits>

#include "engine/kernels/float_functions.h"
#include "engine/kernels/float_ops.h"

namespace octet::kernels {
namespace {

constexpr int64_t kSumParts = 16;

// Not std::log: an inline function of this file's instruction set must not be linked elsewhere.
inline float logarithm_of(float x) {
  return __builtin_logf(x);
}

// e^y for y <= 0, and zero where that is denormal: such an element changes no sum, and processors take a hundred times
// as long for it and for every product with it. The masks of attention (-100) make millions. NaN stays NaN.
template <typename F>
OCTET_INLINE typename F::V exp_or_zero(typename F::V y) {
  const typename F::V least = F::broadcast(-87.33654f);  // of 2^-126
  return F::select_ge(least, y, F::broadcast(0), exp_negative<F>(F::max(least, y)));
}

// A NaN is passed by here and then makes the sum NaN.
template <typename F>
float largest_of(const float* in, int64_t n) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  float parts[kSumParts];
  int64_t i = 0;
  typename F::V top = F::broadcast(kLowest);
  for (; i + F::kLanes <= n; i += F::kLanes) top = F::max(F::load(in + i), top);
  F::store(parts, top);
  float out = kLowest;
  for (int64_t lane = 0; lane < F::kLanes; ++lane) out = parts[lane] > out ? parts[lane] : out;
  for (; i < n; ++i) out = in[i] > out ? in[i] : out;
  return out;
}

// The sum of exp(in - top); the exponentials are written where `out` is not null.
template <typename F>
float sum_exponentials(const float* in, float* out, int64_t n, float top) {
  constexpr int64_t kVectors = kSumParts / F::kLanes;
  const typename F::V shift = F::broadcast(top);
  typename F::V sums[kVectors];
  for (auto& sum : sums) sum = F::broadcast(0);
  int64_t i = 0;
  for (; i + kSumParts <= n; i += kSumParts) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t at = i + v * F::kLanes;
      const typename F::V e = exp_or_zero<F>(F::load(in + at) - shift);
      if (out) F::store(out + at, e);
      sums[v] = sums[v] + e;
    }
  }
  float parts[kSumParts], rest[kSumParts];
  for (int64_t v = 0; v < kVectors; ++v) F::store(parts + v * F::kLanes, sums[v]);
  for (int64_t at = i; at < n; at += F::kLanes) {
    const int64_t lanes = n - at < F::kLanes ? n - at : F::kLanes;
    const typename F::V e = exp_or_zero<F>(F::load_first(in + at, lanes) - shift);
    if (out) F::store_first(out + at, e, lanes);
    F::store(rest + (at - i), e);
  }
  for (int64_t lane = 0; lane < n - i; ++lane) parts[lane] += rest[lane];
  for (int64_t half = kSumParts / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) parts[lane] += parts[lane + half];
  return parts[0];
}

template <typename F>
void softmax_line(const float* in, float* out, int64_t n, bool logarithm) {
  const float top = largest_of<F>(in, n);
  const float sum = sum_exponentials<F>(in, logarithm ? nullptr : out, n, top);
  const float shift = logarithm ? logarithm_of(sum) : 0;
  for (int64_t i = 0; i < n; i += F::kLanes) {
    const int64_t lanes = n - i < F::kLanes ? n - i : F::kLanes;
    F::store_first(out + i,
                   logarithm ? (F::load_first(in + i, lanes) - F::broadcast(top)) - F::broadcast(shift)
                             : F::load_first(out + i, lanes) / F::broadcast(sum),
                   lanes);
  }
}

// `lanes` neighboring lines with elements `stride` apart.
template <typename F>
void softmax_lines(const float* in, float* out, int64_t n, int64_t stride, int64_t lanes, bool logarithm) {
  using V = typename F::V;
  V top = F::broadcast(-std::numeric_limits<float>::infinity()), sum = F::broadcast(0);
  for (int64_t k = 0; k < n; ++k) top = F::max(F::load_first(in + k * stride, lanes), top);
  for (int64_t k = 0; k < n; ++k) {
    const V e = exp_or_zero<F>(F::load_first(in + k * stride, lanes) - top);
    if (!logarithm) F::store_first(out + k * stride, e, lanes);
    sum = sum + e;
  }
  if (logarithm) {
    float logs[F::kLanes];
    F::store(logs, sum);
    for (float& x : logs) x = logarithm_of(x);
    sum = F::load(logs);
  }
  for (int64_t k = 0; k < n; ++k)
    F::store_first(
        out + k * stride,
        logarithm ? (F::load_first(in + k * stride, lanes) - top) - sum : F::load_first(out + k * stride, lanes) / sum,
        lanes);
}

template <typename F>
void softmax(const SoftmaxArgs& args, Range outer) {
  const AxisArgs& a = args.shape;
  for (int64_t o = outer.begin; o < outer.end; ++o) {
    const float* in = a.in + o * a.axis * a.inner;
    float* out = a.out + o * a.axis * a.inner;
    if (a.inner == 1) {
      softmax_line<F>(in, out, a.axis, args.logarithm);
      continue;
    }
    for (int64_t i = 0; i < a.inner; i += F::kLanes)
      softmax_lines<F>(in + i, out + i, a.axis, a.inner, a.inner - i < F::kLanes ? a.inner - i : F::kLanes,
                       args.logarithm);
  }
}

}  // namespace
}  // namespace octet::kernels

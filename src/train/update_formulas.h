// What a step does to an element (update_kernels.h says it in words), once for all processors: V is a vector of floats
// on CPUs (update_kernels_body.h) and a float on GPUs (cuda/update_kernels_cuda.cu), so that both give the same bits.
// Who includes it has declared `V square_root(V)` before. Float32 throughout, without FMA.
#pragma once
#include "train/update_kernels.h"

#if defined(__CUDACC__)
#define OCTET_INLINE __device__ __forceinline__
#else
#define OCTET_INLINE __attribute__((always_inline)) inline
#endif

namespace octet::train::kernels {
namespace {

// The new weight of kSgd. `m`: the momentum, is followed; null: none.
template <typename V>
OCTET_INLINE V sgd_step(const UpdateRule& rule, V g, V w, V* m) {
  const float before = rule.decay_last ? 0.0f : rule.decay, after = rule.decay_last ? rule.decay : 0.0f;
  if (before != 0) g += w * before;
  if (m) {
    *m = *m * rule.momentum + g;
    g = rule.nesterov ? g + *m * rule.momentum : *m;
  }
  if (after != 0) g += w * after;
  return w - g * rule.rate;
}

template <typename V>
struct Moments {
  V first, second;
};

template <typename V>
OCTET_INLINE void follow(const UpdateRule& rule, V g, Moments<V>& m) {
  m.first = m.first + (g - m.first) * rule.gain1;
  m.second = m.second * rule.beta2 + g * g * rule.gain2;
}

template <typename V>
OCTET_INLINE V denominator(const UpdateRule& rule, V second) {
  return square_root(second) * rule.correction2 + rule.eps;
}

// The new weight of kAdam; follows the moments.
template <typename V>
OCTET_INLINE V adam_step(const UpdateRule& rule, V g, V w, Moments<V>& m) {
  const float rate = rule.rate * rule.correction1;
  const float kept = rule.decoupled ? 1 - rule.rate * rule.decay : 1, added = rule.decoupled ? 0 : rule.decay;
  if (added != 0) g += w * added;
  follow(rule, g, m);
  return w * kept - m.first * rate / denominator(rule, m.second);
}

// u of kLamb.
template <typename V>
OCTET_INLINE V lamb_direction(const UpdateRule& rule, const Moments<V>& m, V w) {
  return m.first * rule.correction1 / denominator(rule, m.second) + w * rule.decay;
}

// What u is multiplied by, of the norms |w| and |u|.
OCTET_INLINE float lamb_rate(const UpdateRule& rule, double weight, double update) {
  const bool adapts = (rule.decay != 0 || rule.always_adapt) && weight > 0 && update > 0;
  return static_cast<float>(adapts ? rule.rate * weight / update : rule.rate);
}

}  // namespace
}  // namespace octet::train::kernels

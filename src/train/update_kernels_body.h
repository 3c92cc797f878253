// The kernels themselves, included by one unit per instruction set, which defines OCTET_UPDATE_TABLE. Low types are
// converted in blocks that stay in the first-level cache, so that each formula stands here once, in float32.
#pragma once
#include "train/kernel_vectors.h"
#include "train/update_kernels.h"

namespace octet::train::kernels {
namespace {

constexpr int64_t kBlock = 1024;

// The `n` elements from `at` on, as they lie or converted into `scratch`.
const float* read(const void* data, Storage type, int64_t at, int64_t n, float* scratch) {
  if (type == Storage::kFloat32) return static_cast<const float*>(data) + at;
  const uint16_t* bits = static_cast<const uint16_t*>(data) + at;
  for (int64_t i = 0; i < n; i += kLanes) {
    const int lanes = lanes_left(n, i);
    store(scratch + i, type == Storage::kBFloat16 ? load(bits + i, lanes) : load_half(bits + i, lanes), lanes);
  }
  return scratch;
}

// Rounds `values` into a low type. float32: `values` lie there already, or are copied.
void write(const Array& array, int64_t at, int64_t n, const float* values) {
  if (array.type == Storage::kFloat32) {
    float* to = static_cast<float*>(array.data) + at;
    if (to != values) __builtin_memcpy(to, values, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  uint16_t* bits = static_cast<uint16_t*>(array.data) + at;
  for (int64_t i = 0; i < n; i += kLanes) {
    const int lanes = lanes_left(n, i);
    if (array.type == Storage::kBFloat16) {
      store(bits + i, load(values + i, lanes), lanes);
    } else {
      store_half(bits + i, load(values + i, lanes), lanes);
    }
  }
}

typedef double Doubles __attribute__((vector_size(128)));

OCTET_INLINE double sum(Doubles v) {
  double total = 0;
  for (int i = 0; i < kLanes; ++i) total += v[i];
  return total;
}

OCTET_INLINE void add_square(Doubles& sum, Vec v) {
  const Doubles wide = __builtin_convertvector(v, Doubles);
  sum += wide * wide;
}

double square_sum(const ConstArray& gradient, float factor, int64_t begin, int64_t end) {
  alignas(64) float scratch[kBlock];
  Doubles total{};
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = end - at < kBlock ? end - at : kBlock;
    const float* g = read(gradient.data, gradient.type, at, n, scratch);
    for (int64_t i = 0; i < n; i += kLanes) add_square(total, load(g + i, lanes_left(n, i)) * factor);
  }
  return sum(total);
}

// Calls f(g, w, i, lanes) for every vector of the range, i counted from the start of the arrays, and stores the weight
// that it makes of g, the gradient times the rule's factor, and w. `kStore`: else w stays as it is.
template <bool kStore, typename F>
OCTET_INLINE void for_elements(const UpdateArrays& a, const UpdateRule& rule, int64_t begin, int64_t end, F f) {
  alignas(64) float gradients[kBlock], weights[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = end - at < kBlock ? end - at : kBlock;
    const float* g = a.gradient.data ? read(a.gradient.data, a.gradient.type, at, n, gradients) : nullptr;
    float* w = const_cast<float*>(read(a.weight.data, a.weight.type, at, n, weights));
    for (int64_t i = 0; i < n; i += kLanes) {
      const int lanes = lanes_left(n, i);
      const Vec updated = f(g ? load(g + i, lanes) * rule.gradient_factor : Vec{}, load(w + i, lanes), at + i, lanes);
      if (kStore) store(w + i, updated, lanes);
    }
    if (kStore) write(a.weight, at, n, w);
    if (kStore && a.copy.data) write(a.copy, at, n, w);
  }
}

void sgd(const UpdateArrays& a, const UpdateRule& rule, int64_t begin, int64_t end) {
  const float before = rule.decay_last ? 0.0f : rule.decay, after = rule.decay_last ? rule.decay : 0.0f;
  for_elements<true>(a, rule, begin, end, [&](Vec g, Vec w, int64_t i, int lanes) {
    if (before != 0) g += w * before;
    if (a.first) {
      const Vec m = load(a.first + i, lanes) * rule.momentum + g;
      store(a.first + i, m, lanes);
      g = rule.nesterov ? g + m * rule.momentum : m;
    }
    if (after != 0) g += w * after;
    return w - g * rule.rate;
  });
}

struct Moments {
  Vec first, second;
};

OCTET_INLINE Moments follow(const UpdateArrays& a, const UpdateRule& rule, Vec g, int64_t i, int lanes) {
  const Vec m = load(a.first + i, lanes), v = load(a.second + i, lanes);
  const Moments out{m + (g - m) * rule.gain1, v * rule.beta2 + g * g * rule.gain2};
  store(a.first + i, out.first, lanes);
  store(a.second + i, out.second, lanes);
  return out;
}

OCTET_INLINE Vec denominator(const UpdateRule& rule, Vec second) {
  return square_root(second) * rule.correction2 + rule.eps;
}

void adam(const UpdateArrays& a, const UpdateRule& rule, int64_t begin, int64_t end) {
  const float rate = rule.rate * rule.correction1;
  const float kept = rule.decoupled ? 1 - rule.rate * rule.decay : 1, added = rule.decoupled ? 0 : rule.decay;
  for_elements<true>(a, rule, begin, end, [&](Vec g, Vec w, int64_t i, int lanes) {
    if (added != 0) g += w * added;
    const Moments m = follow(a, rule, g, i, lanes);
    return w * kept - m.first * rate / denominator(rule, m.second);
  });
}

void update(const UpdateArrays& a, const UpdateRule& rule, int64_t begin, int64_t end) {
  return rule.kind == UpdateKind::kSgd ? sgd(a, rule, begin, end) : adam(a, rule, begin, end);
}

// u of the header.
OCTET_INLINE Vec lamb_step(const UpdateRule& rule, const Moments& m, Vec w) {
  return m.first * rule.correction1 / denominator(rule, m.second) + w * rule.decay;
}

LambNorms lamb_moments(const UpdateArrays& a, const UpdateRule& rule, int64_t begin, int64_t end) {
  Doubles weight{}, step{};
  for_elements<false>(a, rule, begin, end, [&](Vec g, Vec w, int64_t i, int lanes) {
    const Moments m = follow(a, rule, g, i, lanes);
    Vec u = lamb_step(rule, m, w);
    if (lanes < kLanes)
      for (int lane = lanes; lane < kLanes; ++lane) u[lane] = 0;  // 0 / eps is 0, but 0 / 0 is not
    add_square(weight, w);
    add_square(step, u);
    return w;
  });
  return {sum(weight), sum(step)};
}

// The step is computed anew from the moments: cheaper than to write it and read it back.
void lamb_update(const UpdateArrays& arrays, const UpdateRule& rule, float rate, int64_t begin, int64_t end) {
  UpdateArrays a = arrays;
  a.gradient.data = nullptr;  // is in the moments
  for_elements<true>(a, rule, begin, end, [&](Vec, Vec w, int64_t i, int lanes) {
    return w - lamb_step(rule, {load(a.first + i, lanes), load(a.second + i, lanes)}, w) * rate;
  });
}

}  // namespace

const UpdateTable& OCTET_UPDATE_TABLE() {
  static constexpr UpdateTable table = {square_sum, update, lamb_moments, lamb_update};
  return table;
}

}  // namespace octet::train::kernels

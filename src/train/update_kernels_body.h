// The kernels themselves, included by one unit per instruction set, which defines OCTET_UPDATE_TABLE. Low types are
// converted in blocks that stay in the first-level cache, so that the formulas (update_formulas.h) see float32 alone.
#pragma once
#include <cstddef>

#include "train/kernel_vectors.h"
#include "train/update_formulas.h"

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

#if defined(__AVX512F__)
typedef double Doubles __attribute__((vector_size(128)));
#else
typedef double DoublePart __attribute__((vector_size(8 * kPart)));
using Doubles = Sixteen<DoublePart>;
#endif

OCTET_INLINE double sum(Doubles v) {
  double lanes[kLanes], total = 0;
  __builtin_memcpy(lanes, &v, sizeof v);
  for (const double lane : lanes) total += lane;
  return total;
}

OCTET_INLINE void add_square(Doubles& sum, Vec v) {
  const Doubles wide = converted<Doubles>(v);
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
  for_elements<true>(a, rule, begin, end, [&](Vec g, Vec w, int64_t i, int lanes) {
    if (!a.first) return sgd_step<Vec>(rule, g, w, nullptr);
    Vec m = load(a.first + i, lanes);
    w = sgd_step(rule, g, w, &m);
    store(a.first + i, m, lanes);
    return w;
  });
}

OCTET_INLINE Moments<Vec> load_moments(const UpdateArrays& a, int64_t i, int lanes) {
  return {load(a.first + i, lanes), load(a.second + i, lanes)};
}

OCTET_INLINE void store_moments(const UpdateArrays& a, const Moments<Vec>& m, int64_t i, int lanes) {
  store(a.first + i, m.first, lanes);
  store(a.second + i, m.second, lanes);
}

void adam(const UpdateArrays& a, const UpdateRule& rule, int64_t begin, int64_t end) {
  for_elements<true>(a, rule, begin, end, [&](Vec g, Vec w, int64_t i, int lanes) {
    Moments<Vec> m = load_moments(a, i, lanes);
    w = adam_step(rule, g, w, m);
    store_moments(a, m, i, lanes);
    return w;
  });
}

void update(const UpdateArrays& a, const UpdateRule& rule, int64_t begin, int64_t end) {
  return rule.kind == UpdateKind::kSgd ? sgd(a, rule, begin, end) : adam(a, rule, begin, end);
}

OCTET_INLINE Vec without_lanes_behind(Vec v, int lanes) {
  float first[kLanes];
  store(first, v, lanes);
  return load(first, lanes);
}

LambNorms lamb_moments(const UpdateArrays& a, const UpdateRule& rule, int64_t begin, int64_t end) {
  Doubles weight{}, step{};
  for_elements<false>(a, rule, begin, end, [&](Vec g, Vec w, int64_t i, int lanes) {
    Moments<Vec> m = load_moments(a, i, lanes);
    follow(rule, g, m);
    store_moments(a, m, i, lanes);
    Vec u = lamb_direction(rule, m, w);
    if (lanes < kLanes) u = without_lanes_behind(u, lanes);  // 0 / eps is 0, but 0 / 0 is not
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
    return w - lamb_direction(rule, load_moments(a, i, lanes), w) * rate;
  });
}

}  // namespace

const UpdateTable& OCTET_UPDATE_TABLE() {
  static constexpr UpdateTable table = {square_sum, update, lamb_moments, lamb_update};
  return table;
}

}  // namespace octet::train::kernels

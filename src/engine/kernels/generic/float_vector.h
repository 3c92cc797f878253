// Four floats, for float_functions.h.
#pragma once
#include "engine/kernels/generic/vector.h"

namespace octet::kernels {
namespace {

struct F4 {
  typedef Floats V;
  static constexpr int64_t kLanes = 4;
  static OCTET_INLINE V broadcast(float x) { return all(x); }
  static OCTET_INLINE V load(const float* p) { return kernels::load<V>(p); }
  static OCTET_INLINE void store(float* p, V v) { kernels::store(p, v); }
  static OCTET_INLINE V load_first(const float* p, int64_t n) {
    if (n >= 4) return load(p);
    V v{};
    for (int64_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  static OCTET_INLINE void store_first(float* p, V v, int64_t n) {
    if (n >= 4) return store(p, v);
    for (int64_t i = 0; i < n; ++i) p[i] = v[i];
  }
  static OCTET_INLINE V min(V a, V b) { return a < b ? a : b; }
  static OCTET_INLINE V max(V a, V b) { return a > b ? a : b; }
  static OCTET_INLINE V select_ge(V x, V bound, V a, V b) { return x >= bound ? a : b; }
  static OCTET_INLINE V with_sign(V v, V sign) {
    const Ints bit = all(INT32_MIN);
    return (V)(((Ints)v & ~bit) | ((Ints)sign & bit));
  }
  static OCTET_INLINE V exponent(V t) { return (V)((Ints)t << 23); }
};

}  // namespace
}  // namespace octet::kernels

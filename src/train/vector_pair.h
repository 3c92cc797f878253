// Two vectors of GCC's extensions as one of twice the lanes. GCC takes vectors that are wider than the registers, too,
// and splits sums and products well; but comparisons and choices of such vectors it makes lane by lane, with scalar
// instructions that take ten times as long. Included by kernel_vectors.h alone, under its rules.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>

#define OCTET_INLINE __attribute__((always_inline)) inline

namespace octet::train::kernels {
namespace {

template <typename T>
struct Pair {
  T low, high;
};

// The type of a lane.
template <typename T>
struct LaneOf {
  static T vector;
  using type = __typeof__(vector[0] + vector[0]);
};
template <typename T>
struct LaneOf<Pair<T>> : LaneOf<T> {};

// Operators lane by lane, of two vectors, or of one and a number for all lanes.
#define OCTET_LANES(op)                                                      \
  template <typename T>                                                      \
  OCTET_INLINE auto operator op(Pair<T> a, Pair<T> b) {                      \
    return Pair<decltype(a.low op b.low)>{a.low op b.low, a.high op b.high}; \
  }                                                                          \
  template <typename T>                                                      \
  OCTET_INLINE auto operator op(Pair<T> a, typename LaneOf<T>::type b) {     \
    return Pair<decltype(a.low op b)>{a.low op b, a.high op b};              \
  }
OCTET_LANES(+)
OCTET_LANES(-)
OCTET_LANES(*)
OCTET_LANES(/)
OCTET_LANES(&)
OCTET_LANES(|)
OCTET_LANES(<<)
OCTET_LANES(>>)
OCTET_LANES(==)
OCTET_LANES(!=)
OCTET_LANES(<)
OCTET_LANES(<=)
OCTET_LANES(>)
OCTET_LANES(>=)
#undef OCTET_LANES

template <typename T>
OCTET_INLINE Pair<T>& operator+=(Pair<T>& a, Pair<T> b) {
  return a = a + b;
}

// `condition`: all bits of a lane, or none.
template <typename C, typename T>
OCTET_INLINE T select(C condition, T yes, T no) {
  return condition ? yes : no;
}
template <typename C, typename T>
OCTET_INLINE Pair<T> select(Pair<C> condition, Pair<T> yes, Pair<T> no) {
  return {select(condition.low, yes.low, no.low), select(condition.high, yes.high, no.high)};
}

// The same bits as another type of the same size.
template <typename To, typename From>
OCTET_INLINE To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// The same numbers as another type of the same number of lanes.
template <typename To>
struct Converted {
  template <typename From>
  static OCTET_INLINE To of(From from) {
    return __builtin_convertvector(from, To);
  }
};
template <typename To>
struct Converted<Pair<To>> {
  template <typename From>
  static OCTET_INLINE Pair<To> of(Pair<From> from) {
    return {Converted<To>::of(from.low), Converted<To>::of(from.high)};
  }
};
template <typename To, typename From>
OCTET_INLINE To converted(From from) {
  return Converted<To>::of(from);
}

// Correctly rounded.
template <typename T>
OCTET_INLINE T square_root(T v) {
#if defined(__AVX512F__)
  if constexpr (sizeof v == 64) return (T)_mm512_sqrt_ps((__m512)v);
#elif defined(__AVX2__)
  if constexpr (sizeof v == 32) return (T)_mm256_sqrt_ps((__m256)v);
#endif
  for (unsigned i = 0; i < sizeof v / sizeof v[0]; ++i) v[i] = __builtin_sqrtf(v[i]);
  return v;
}
template <typename T>
OCTET_INLINE Pair<T> square_root(Pair<T> v) {
  return {square_root(v.low), square_root(v.high)};
}

// One bit a lane, the first lane's is the lowest: whether all of its bits are set, or none.
template <typename T>
OCTET_INLINE uint16_t to_bits(T condition) {
#if defined(__AVX512F__)
  if constexpr (sizeof condition == 64) return static_cast<uint16_t>(_mm512_movepi32_mask((__m512i)condition));
#elif defined(__AVX2__)
  if constexpr (sizeof condition == 32) return static_cast<uint16_t>(_mm256_movemask_ps((__m256)condition));
#endif
  uint16_t bits = 0;
  for (unsigned i = 0; i < sizeof condition / sizeof condition[0]; ++i)
    bits = static_cast<uint16_t>(bits | ((condition[i] & 1) << i));
  return bits;
}
template <typename T>
OCTET_INLINE uint16_t to_bits(Pair<T> condition) {
  constexpr int lanes = sizeof(T) / sizeof(int32_t);
  return static_cast<uint16_t>(to_bits(condition.low) | (to_bits(condition.high) << lanes));
}

}  // namespace
}  // namespace octet::train::kernels

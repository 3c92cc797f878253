// Vectors of 16 floats in GCC's extensions, and what reads and writes them. Included by the bodies of kernels, each of
// which is compiled once per instruction set: everything is in an unnamed namespace, so that no unit shares an inline
// function with another, and nothing of the standard library is used.
#pragma once
#include "train/vector_pair.h"

namespace octet::train::kernels {

using Bf16 = uint16_t;  // its bits

namespace {

constexpr int kLanes = 16;
#if defined(__AVX512F__)
typedef float Vec __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));
#else
#if defined(__AVX2__)
template <typename T>
using Sixteen = Pair<T>;
constexpr int kPart = 8;
#else
template <typename T>
using Sixteen = Pair<Pair<T> >;
constexpr int kPart = 4;
#endif
typedef float FloatPart __attribute__((vector_size(4 * kPart)));
typedef int32_t IntPart __attribute__((vector_size(4 * kPart)));
typedef uint32_t WordPart __attribute__((vector_size(4 * kPart)));
typedef uint16_t HalfPart __attribute__((vector_size(2 * kPart)));
using Vec = Sixteen<FloatPart>;
using Ints = Sixteen<IntPart>;
using Words = Sixteen<WordPart>;
using Halves = Sixteen<HalfPart>;
#endif
static_assert(sizeof(Vec) == kLanes * sizeof(float) && sizeof(Halves) == kLanes * sizeof(uint16_t));

OCTET_INLINE Vec splat(float x) {
  return Vec{} + x;
}

// The first `n` elements; the others are 0.
template <typename V, typename T>
OCTET_INLINE V load_some(const T* p, int n) {
  T lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return bits_as<V>(lanes);
}
template <typename V, typename T>
OCTET_INLINE void store_some(T* p, V v, int n) {
  T lanes[kLanes];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

// `n`: lanes that exist (1..16); the others read as 0.
OCTET_INLINE Vec load(const float* p, int n) {
#if defined(__AVX512F__)
  if (n < kLanes) return (Vec)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
#else
  if (n < kLanes) return load_some<Vec>(p, n);
#endif
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

OCTET_INLINE void store(float* p, Vec v, int n) {
#if defined(__AVX512F__)
  if (n < kLanes) return _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), (__m512)v);
#else
  if (n < kLanes) return store_some(p, v, n);
#endif
  __builtin_memcpy(p, &v, sizeof v);
}

OCTET_INLINE Halves load_halves(const uint16_t* p, int n) {
#if defined(__AVX512F__)
  if (n < kLanes) return (Halves)_mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << n) - 1), p);
#else
  if (n < kLanes) return load_some<Halves>(p, n);
#endif
  Halves h;
  __builtin_memcpy(&h, p, sizeof h);
  return h;
}

OCTET_INLINE void store_halves(uint16_t* p, Halves h, int n) {
#if defined(__AVX512F__)
  if (n < kLanes) return _mm256_mask_storeu_epi16(p, static_cast<__mmask16>((1u << n) - 1), (__m256i)h);
#else
  if (n < kLanes) return store_some(p, h, n);
#endif
  __builtin_memcpy(p, &h, sizeof h);
}

OCTET_INLINE Vec load(const Bf16* p, int n) {
  return bits_as<Vec>(converted<Words>(load_halves(p, n)) << 16);
}

// Round to nearest even; NaN stays NaN.
OCTET_INLINE void store(Bf16* p, Vec v, int n) {
  const Words bits = bits_as<Words>(v);
  const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  store_halves(p, converted<Halves>(select(v == v, rounded, Words{} + 0x7fc0u)), n);
}

// float16 as its bits. Subnormals, infinities and NaN included.
OCTET_INLINE Vec load_half(const uint16_t* p, int n) {
  const Words wide = converted<Words>(load_halves(p, n));
  const Words magnitude = (wide & 0x7fffu) << 13;
  // Moves the exponent from the bias of 15 to that of 127; a subnormal becomes a normal number.
  const Words finite = bits_as<Words>(bits_as<Vec>(magnitude) * 5.192296858534828e33f);  // 2^112
  const Words special = magnitude | 0x7f800000u;
  return bits_as<Vec>(select(magnitude >= 0x0f800000u, special, finite) | ((wide & 0x8000u) << 16));
}

// Round to nearest even; what is too large becomes an infinity, NaN stays NaN.
OCTET_INLINE void store_half(uint16_t* p, Vec v, int n) {
  const Words bits = bits_as<Words>(v), magnitude = bits & 0x7fffffffu;
  const Words normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14: adding 0.5 leaves the multiple of 2^-24 in the last bits of the sum.
  const Words small = bits_as<Words>(bits_as<Vec>(magnitude) + 0.5f) - 0x3f000000u;
  Words half = select(magnitude < 0x38800000u, small, normal);
  half = select(magnitude >= 0x477ff000u, Words{} + 0x7c00u, half);
  half = select(magnitude > 0x7f800000u, Words{} + 0x7e00u, half);
  store_halves(p, converted<Halves>(half | ((bits >> 16) & 0x8000u)), n);
}

OCTET_INLINE int lanes_left(int64_t channels, int64_t c) {
  return channels - c < kLanes ? static_cast<int>(channels - c) : kLanes;
}

}  // namespace
}  // namespace octet::train::kernels

// Vectors of 16 floats in GCC's extensions, and what reads and writes them. Included by the bodies of kernels, each of
// which is compiled once per instruction set: everything is in an unnamed namespace, so that no unit shares an inline
// function with another, and nothing of the standard library is used.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace octet::train::kernels {

using Bf16 = uint16_t;  // its bits

namespace {

#define OCTET_INLINE __attribute__((always_inline)) inline

constexpr int kLanes = 16;
typedef float Vec __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

OCTET_INLINE Vec splat(float x) {
  return Vec{} + x;
}
OCTET_INLINE Vec select(Ints condition, Vec yes, Vec no) {
  return condition ? yes : no;
}

// `n`: lanes that exist (1..16); the others read as 0.
OCTET_INLINE Vec load(const float* p, int n) {
  Vec v{};
#if defined(__AVX512F__)
  if (n < kLanes) return (Vec)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
#else
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
#endif
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

OCTET_INLINE void store(float* p, Vec v, int n) {
#if defined(__AVX512F__)
  if (n < kLanes) return _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), (__m512)v);
#else
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) p[i] = v[i];
    return;
  }
#endif
  __builtin_memcpy(p, &v, sizeof v);
}

OCTET_INLINE Vec load(const Bf16* p, int n) {
  Halves h{};
#if defined(__AVX512F__)
  if (n < kLanes) {
    h = (Halves)_mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << n) - 1), p);
  } else {
    __builtin_memcpy(&h, p, sizeof h);
  }
#else
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) h[i] = p[i];
  } else {
    __builtin_memcpy(&h, p, sizeof h);
  }
#endif
  return (Vec)(__builtin_convertvector(h, Words) << 16);
}

// Round to nearest even; NaN stays NaN.
OCTET_INLINE void store(Bf16* p, Vec v, int n) {
  const Words bits = (Words)v;
  const Words rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Words result = v == v ? rounded : Words{} + 0x7fc0u;
  const Halves h = __builtin_convertvector(result, Halves);
#if defined(__AVX512F__)
  if (n < kLanes) return _mm256_mask_storeu_epi16(p, static_cast<__mmask16>((1u << n) - 1), (__m256i)h);
#else
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) p[i] = h[i];
    return;
  }
#endif
  __builtin_memcpy(p, &h, sizeof h);
}

// float16 as its bits. Subnormals, infinities and NaN included.
OCTET_INLINE Vec load_half(const uint16_t* p, int n) {
  Halves h{};
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) h[i] = p[i];
  } else {
    __builtin_memcpy(&h, p, sizeof h);
  }
  const Words wide = __builtin_convertvector(h, Words);
  const Words magnitude = (wide & 0x7fffu) << 13;
  // Moves the exponent from the bias of 15 to that of 127; a subnormal becomes a normal number.
  const Words finite = (Words)((Vec)magnitude * 5.192296858534828e33f);  // 2^112
  const Words special = magnitude | 0x7f800000u;
  return (Vec)((magnitude >= 0x0f800000u ? special : finite) | ((wide & 0x8000u) << 16));
}

// Round to nearest even; what is too large becomes an infinity, NaN stays NaN.
OCTET_INLINE void store_half(uint16_t* p, Vec v, int n) {
  const Words bits = (Words)v, magnitude = bits & 0x7fffffffu;
  const Words normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14: adding 0.5 leaves the multiple of 2^-24 in the last bits of the sum.
  const Words small = (Words)((Vec)magnitude + 0.5f) - 0x3f000000u;
  Words half = magnitude < 0x38800000u ? small : normal;
  half = magnitude >= 0x477ff000u ? Words{} + 0x7c00u : half;
  half = magnitude > 0x7f800000u ? Words{} + 0x7e00u : half;
  const Halves h = __builtin_convertvector(half | ((bits >> 16) & 0x8000u), Halves);
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) p[i] = h[i];
    return;
  }
  __builtin_memcpy(p, &h, sizeof h);
}

OCTET_INLINE Vec square_root(Vec v) {
#if defined(__AVX512F__)
  return (Vec)_mm512_sqrt_ps((__m512)v);
#elif defined(__AVX2__)
  __m256 parts[2];
  __builtin_memcpy(parts, &v, sizeof v);
  for (__m256& part : parts) part = _mm256_sqrt_ps(part);
  __builtin_memcpy(&v, parts, sizeof v);
  return v;
#else
  for (int i = 0; i < kLanes; ++i) v[i] = __builtin_sqrtf(v[i]);
  return v;
#endif
}

OCTET_INLINE int lanes_left(int64_t channels, int64_t c) {
  return channels - c < kLanes ? static_cast<int>(channels - c) : kLanes;
}

}  // namespace
}  // namespace octet::train::kernels

// 128-bit vectors in the language of GCC and Clang, which both translate for any CPU: SSE2, NEON and what follows.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "engine/kernels/tensor.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "packed weights and narrowing by shuffles assume little endian");

namespace octet::kernels {
namespace {

#define OCTET_INLINE __attribute__((always_inline)) inline

typedef uint8_t Codes __attribute__((vector_size(16)));
typedef int16_t Words __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));
typedef float Floats __attribute__((vector_size(16)));
typedef uint8_t HalfCodes __attribute__((vector_size(8)));
typedef int8_t HalfBytes __attribute__((vector_size(8)));
typedef int16_t HalfWords __attribute__((vector_size(8)));

template <typename Vector, typename Element>
OCTET_INLINE Vector load(const Element* p) {
  Vector v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <typename Vector, typename Element>
OCTET_INLINE void store(Element* p, Vector v) {
  std::memcpy(p, &v, sizeof v);
}
OCTET_INLINE Floats all(float x) {
  return Floats{x, x, x, x};
}
OCTET_INLINE Ints all(int32_t x) {
  return Ints{x, x, x, x};
}

// 8 bytes -> 16-bit words.
OCTET_INLINE Words words(const uint8_t* p) {
  return __builtin_convertvector(load<HalfCodes>(p), Words);
}
OCTET_INLINE Words words(const int8_t* p) {
  return __builtin_convertvector(load<HalfBytes>(p), Words);
}
// The lower and the upper four words.
OCTET_INLINE Ints low(Words w) {
  return __builtin_convertvector(static_cast<HalfWords>(__builtin_shufflevector(w, w, 0, 1, 2, 3)), Ints);
}
OCTET_INLINE Ints high(Words w) {
  return __builtin_convertvector(static_cast<HalfWords>(__builtin_shufflevector(w, w, 4, 5, 6, 7)), Ints);
}
OCTET_INLINE Floats floats(Ints i) {
  return __builtin_convertvector(i, Floats);
}

// sums[i] + words[2 i] + words[2 i + 1]
OCTET_INLINE Ints add_pairs(Ints sums, Words words) {
#if defined(__ARM_NEON)
  return (Ints)vpadalq_s16((int32x4_t)sums, (int16x8_t)words);
#else
  const Ints pairs = (Ints)words;
  return sums + ((pairs << 16) >> 16) + (pairs >> 16);
#endif
}

// 16 values of 0..255 -> codes.
OCTET_INLINE Codes narrow(Ints a, Ints b, Ints c, Ints d) {
  const Words ab = __builtin_shufflevector((Words)a, (Words)b, 0, 2, 4, 6, 8, 10, 12, 14);
  const Words cd = __builtin_shufflevector((Words)c, (Words)d, 0, 2, 4, 6, 8, 10, 12, 14);
  return __builtin_shufflevector((Codes)ab, (Codes)cd, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

// The nearest integer, ties to even, of |v| < 2^22: the sum has no room for a fraction, and its lowest bits are the
// integer. A NaN gives some integer.
OCTET_INLINE Ints nearest(Floats v) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  return (Ints)(v + all(kMagic)) - (Ints)all(kMagic);
}
// std::clamp, with `low` for a NaN.
OCTET_INLINE Floats clamp(Floats v, Floats low, Floats high) {
  v = v > low ? v : low;
  return v < high ? v : high;
}

// clamp(rne(v) + zero_point, lo, hi): with integers as limits the clamp may come before the rounding.
struct Limits {
  Floats low, high;
  Ints zero_point;
  Limits(int32_t lo, int32_t hi, int32_t zero)
      : low(all(static_cast<float>(lo - zero))), high(all(static_cast<float>(hi - zero))), zero_point(all(zero)) {}
  OCTET_INLINE Ints operator()(Floats v) const { return nearest(clamp(v, low, high)) + zero_point; }
};

// A block of 16 channels of a pixel, of which tensors with a pitch of 4 take 4 bytes.
OCTET_INLINE void store_codes(uint8_t* out, Codes codes, int64_t c_pitch) {
  std::memcpy(out, &codes, 4);
  if (c_pitch >= kChannelBlock) store(out, codes);
}
OCTET_INLINE void look_up(Codes& codes, const uint8_t* table) {
  if (table)
    for (int i = 0; i < 16; ++i) codes[i] = table[codes[i]];
}

// Row r, counted over n * h.
OCTET_INLINE uint8_t* row_of(const QTensor& t, int64_t r) {
  return t.data + r / t.h * t.image_stride + r % t.h * t.row_stride;
}

}  // namespace
}  // namespace octet::kernels

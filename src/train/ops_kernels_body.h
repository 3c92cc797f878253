// The kernels themselves, written with GCC's vector extensions and included by one unit per instruction set, which is
// compiled for that set and defines OCTET_KERNELS_TABLE. Nothing here may be an inline function that another unit could
// share: everything is in an unnamed namespace and nothing of the standard library is used.
#pragma once
#include "train/depthwise_kernel.h"
#include "train/kernel_vectors.h"
#include "train/ops_kernels.h"

namespace octet::train::kernels {
namespace {

// `v` where the bit is set, else 0.
OCTET_INLINE Vec keep(Vec v, uint16_t bits) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_mov_ps(bits, (__m512)v);
#else
  constexpr int32_t kBit[kLanes] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  return bits_as<Vec>(bits_as<Ints>(v) & ((bits_as<Ints>(kBit) & static_cast<int32_t>(bits)) != 0));
#endif
}

// Round half to even, for |x| < 2^22: adding 1.5 * 2^23 leaves no fraction bits.
OCTET_INLINE Vec round_half_even(Vec x) {
  const float magic = 12582912.0f;
  return (x + magic) - magic;
}

template <typename T, bool kAffine, bool kResidual, bool kQuantize>
void forward_rows(const Forward<T>& f, int64_t row_begin, int64_t row_end) {
  const int64_t words = mask_words(f.channels);
  // One step beyond the range is enough to know that a code was clipped; it also keeps the rounding trick exact.
  const Vec scale = splat(f.scale), low = splat(f.low), high = splat(f.high), below = low - 1.0f, above = high + 1.0f;
  const float infinity = __builtin_inff();
  const Vec lower = splat(f.clamp ? f.lower : -infinity), upper = splat(f.clamp ? f.upper : infinity);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t start = row * f.channels;
    for (int64_t c = 0, word = 0; c < f.channels; c += kLanes, ++word) {
      const int n = lanes_left(f.channels, c);
      Vec y = load(f.x + start + c, n);
      if (kAffine) y = y * load(f.multiplier + c, n) + load(f.offset + c, n);
      if (kResidual) y = y + load(f.residual + start + c, n) * f.residual_scale;
      Ints pass = Ints{} - 1;
      if (f.clamp) {
        pass = (y > lower) & (y < upper);
        y = select(y < lower, lower, y);
        y = select(y > upper, upper, y);
      }
      if (kQuantize) {
        y = y / scale;
        const Ints number = y == y;
        y = select(y < below, below, y);
        y = select(y > above, above, y);
        y = round_half_even(y);
        pass = pass & (y >= low) & (y <= high);
        y = select(y < low, low, y);
        y = select(y > high, high, y);
        y = select(number, y, Vec{}) * f.out_scale;
      }
      store(f.out + start + c, y, n);
      if (f.mask) f.mask[row * words + word] = to_bits(pass);
    }
  }
}

template <typename T>
void forward(const Forward<T>& f, int64_t row_begin, int64_t row_end) {
  const bool affine = f.multiplier, residual = f.residual;
  if (f.quantize) {
    if (affine && residual) return forward_rows<T, true, true, true>(f, row_begin, row_end);
    if (affine) return forward_rows<T, true, false, true>(f, row_begin, row_end);
    if (residual) return forward_rows<T, false, true, true>(f, row_begin, row_end);
    return forward_rows<T, false, false, true>(f, row_begin, row_end);
  }
  if (affine && residual) return forward_rows<T, true, true, false>(f, row_begin, row_end);
  if (affine) return forward_rows<T, true, false, false>(f, row_begin, row_end);
  if (residual) return forward_rows<T, false, true, false>(f, row_begin, row_end);
  return forward_rows<T, false, false, false>(f, row_begin, row_end);
}

// Channels are walked in the outer loop, so that the sums stay in registers.
template <typename T>
void statistics(const T* x, int64_t channels, const float* center, int64_t row_begin, int64_t row_end, float* sum,
                float* square) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int n = lanes_left(channels, c);
    const Vec middle = load(center + c, n);
    Vec s0{}, s1{}, q0{}, q1{};
    int64_t row = row_begin;
    for (; row + 1 < row_end; row += 2) {
      const Vec a = load(x + row * channels + c, n) - middle, b = load(x + (row + 1) * channels + c, n) - middle;
      s0 += a;
      q0 += a * a;
      s1 += b;
      q1 += b * b;
    }
    if (row < row_end) {
      const Vec a = load(x + row * channels + c, n) - middle;
      s0 += a;
      q0 += a * a;
    }
    store(sum + c, load(sum + c, n) + (s0 + s1), n);
    store(square + c, load(square + c, n) + (q0 + q1), n);
  }
}

template <typename T>
void gradient_sums(const Backward<T>& b, int64_t row_begin, int64_t row_end, float* sum, float* product) {
  const int64_t words = mask_words(b.channels);
  for (int64_t c = 0, word = 0; c < b.channels; c += kLanes, ++word) {
    const int n = lanes_left(b.channels, c);
    const Vec middle = product ? load(b.center + c, n) : Vec{};
    Vec s{}, p{};
    for (int64_t row = row_begin; row < row_end; ++row) {
      Vec g = load(b.grad + row * b.channels + c, n);
      if (b.mask) g = keep(g, b.mask[row * words + word]);
      s += g;
      if (product) p += g * (load(b.x + row * b.channels + c, n) - middle);
    }
    store(sum + c, load(sum + c, n) + s, n);
    if (product) store(product + c, load(product + c, n) + p, n);
  }
}

template <typename T>
void backward(const Backward<T>& b, int64_t row_begin, int64_t row_end) {
  const int64_t words = mask_words(b.channels);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t start = row * b.channels;
    for (int64_t c = 0, word = 0; c < b.channels; c += kLanes, ++word) {
      const int n = lanes_left(b.channels, c);
      Vec g = load(b.grad + start + c, n);
      if (b.mask) g = keep(g, b.mask[row * words + word]);
      if (b.grad_residual) store(b.grad_residual + start + c, g * b.residual_factor, n);
      if (!b.grad_x) continue;
      Vec d = b.from_grad ? g * load(b.from_grad + c, n) : g * b.factor;
      if (b.from_x)
        d = d + (load(b.x + start + c, n) - load(b.center + c, n)) * load(b.from_x + c, n) + load(b.constant + c, n);
      store(b.grad_x + start + c, d, n);
    }
  }
}

template <typename T>
constexpr Table<T> kTable = {forward<T>, statistics<T>, gradient_sums<T>, backward<T>, depthwise_gradient<T>};

}  // namespace

const Tables& OCTET_KERNELS_TABLE() {
  static constexpr Tables all = {kTable<float>, kTable<Bf16>};
  return all;
}

}  // namespace octet::train::kernels

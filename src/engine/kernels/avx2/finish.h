// The Epilogue of int8_conv.h for blocks of 16 channels, with 256-bit vectors.
#pragma once
#include <optional>

#include "engine/kernels/avx2/function.h"
#include "engine/kernels/avx2/lookup.h"
#include "engine/kernels/avx2/vector.h"
#include "engine/kernels/epilogue_shortcuts.h"

namespace octet::kernels {
namespace {

enum class Sum {
  kNone,
  kRelu,
  kOnce,
  kTwice
};  // residual: none (kRelu: see relu_shortcut), one rounding, two roundings

// The epilogue of one convolution, made once for each call of a kernel. A residual may be the output itself: pixels are
// read before they are written.
class Finish {
 public:
  explicit Finish(const Epilogue& e)
      : limits_(e.lo, e.hi, e.out.zero_point),
        mid_low_(_mm256_set1_ps(static_cast<float>(e.mid_lo - e.mid_zero_point))),
        mid_high_(_mm256_set1_ps(static_cast<float>(e.mid_hi - e.mid_zero_point))),
        mid_multiplier_(_mm256_set1_ps(e.mid_multiplier)),
        residual_multiplier_(_mm256_set1_ps(e.residual_multiplier)),
        residual_zero_(_mm256_set1_epi32(e.residual.zero_point)),
        e_(e),
        sum_(e.residual.data == nullptr ? Sum::kNone
             : e.rounds_twice           ? Sum::kTwice
                                        : Sum::kOnce),
        bounded_(sums_are_bounded(e) && !e.function.has_tails()) {
    if (e.table && e.out.data) lookup_.emplace(e.table);
    if (e.function && e.out.data) function_.emplace(e.function);
  }

  Sum sum() const { return sum_; }
  bool bounded() const { return bounded_; }
  // Codes in pixels of at least 16 bytes without a limit before the conversion: value<sum(), true>(), pack() and
  // look_up() are all there is to do.
  bool straight() const { return bounded_ && e_.out.data && e_.out.c_pitch >= 16; }
  bool has_table() const { return lookup_.has_value(); }

  // 8 channels of a pixel -> rounded dwords. `residual`: their 8 codes.
  template <Sum S, bool kBounded>
  OCTET_INLINE Y value(Y acc, int64_t channel, const uint8_t* residual) const {
    if constexpr (S == Sum::kRelu) return relu_value(acc, _mm256_loadu_ps(e_.multiplier + channel));
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(acc), _mm256_loadu_ps(e_.multiplier + channel));
    if constexpr (S == Sum::kTwice) {
      v = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      v = _mm256_mul_ps(_mm256_min_ps(_mm256_max_ps(v, mid_low_), mid_high_), mid_multiplier_);
    }
    if constexpr (S == Sum::kOnce || S == Sum::kTwice) {
      const Y code = _mm256_sub_epi32(_mm256_cvtepu8_epi32(load8(residual)), residual_zero_);
      v = _mm256_add_ps(v, _mm256_mul_ps(_mm256_cvtepi32_ps(code), residual_multiplier_));
    }
    if (!kBounded && e_.function.has_tails()) v = Function::draw_in(v, e_.function);
    return kBounded ? _mm256_cvtps_epi32(v) : limits_.round(v);
  }
  static OCTET_INLINE Y relu_value(Y acc, __m256 multiplier) {
    return _mm256_cvtps_epi32(
        _mm256_fmadd_ps(_mm256_castsi256_ps(acc), multiplier, _mm256_mul_ps(multiplier, _mm256_set1_ps(-8388608.0f))));
  }
  template <Sum S>
  OCTET_INLINE Y pack(Y a, Y b, Y c, Y d) const {
    if constexpr (S == Sum::kRelu)
      return limits_.below(
          _mm256_permutevar8x32_epi32(_mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)),
                                      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    if (function_)
      return _mm256_permutevar8x32_epi32((*function_)(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)),
                                         _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return limits_.pack(a, b, c, d);
  }
  // 32 words of limits().words() -> codes as vpackuswb leaves them, before the table.
  OCTET_INLINE Y pack_words(Y low, Y high) const {
    return function_ ? (*function_)(low, high) : limits_.clamp(_mm256_packus_epi16(low, high));
  }
  const Limits& limits() const { return limits_; }
  __attribute__((noinline)) void look_up(Y* codes, int64_t vectors) const {
    for (int64_t i = 0; i < vectors; ++i) codes[i] = (*lookup_)(codes[i]);
  }

  // All of it for 16 channels of one pixel. `index`: of the pixel in dense float tensors.
  __attribute__((noinline)) void pixel(const int32_t* acc, int64_t channel, uint8_t* out, const uint8_t* residual,
                                       int64_t index) const {
    if (e_.out.data == nullptr) return floats(acc, channel, index);
    switch (sum_) {
      case Sum::kNone:
      case Sum::kRelu:
        return codes<Sum::kNone>(acc, channel, out, residual);
      case Sum::kOnce:
        return codes<Sum::kOnce>(acc, channel, out, residual);
      case Sum::kTwice:
        return codes<Sum::kTwice>(acc, channel, out, residual);
    }
  }

  // For pixels that start at (n, y, x) and follow each other in the row; acc: [pixel][16].
  void row(const int32_t* acc, int64_t pixels, int64_t channel, int64_t n, int64_t y, int64_t x) const {
    uint8_t* out = nullptr;
    const uint8_t* residual = nullptr;
    if (e_.out.data) out = e_.out.data + n * e_.out.image_stride + y * e_.out.row_stride + x * e_.out.c_pitch + channel;
    // Without a residual nothing is read there, but the address of every pixel's is formed: it has to be one.
    residual = out;
    if (e_.residual.data)
      residual = e_.residual.data + n * e_.residual.image_stride + y * e_.residual.row_stride +
                 x * e_.residual.c_pitch + channel;
    if (straight()) {
      switch (sum_) {
        case Sum::kNone:
        case Sum::kRelu:
          return codes_in_pairs<Sum::kNone>(acc, pixels, channel, out, residual);
        case Sum::kOnce:
          return codes_in_pairs<Sum::kOnce>(acc, pixels, channel, out, residual);
        case Sum::kTwice:
          return codes_in_pairs<Sum::kTwice>(acc, pixels, channel, out, residual);
      }
    }
    const int64_t out_step = out ? e_.out.c_pitch : 0, residual_step = residual ? e_.residual.c_pitch : 0;
    for (int64_t p = 0; p < pixels; ++p)
      pixel(acc + p * 16, channel, out + p * out_step, residual + p * residual_step,
            (n * e_.out.h + y) * e_.out.w + x + p);
  }

 private:
  template <Sum S>
  void codes(const int32_t* acc, int64_t channel, uint8_t* out, const uint8_t* residual) const {
    const Y v0 = value<S, false>(load32(acc), channel, residual);
    const Y v1 = value<S, false>(load32(acc + 8), channel + 8, S == Sum::kNone ? nullptr : residual + 8);
    Y both = pack<S>(v0, v1, v0, v1);
    if (lookup_) both = (*lookup_)(both);
    store_codes(out, _mm256_castsi256_si128(both), e_.out.c_pitch < 16);
  }

  template <Sum S>
  void codes_in_pairs(const int32_t* acc, int64_t pixels, int64_t channel, uint8_t* out,
                      const uint8_t* residual) const {
    const auto half = [&](int64_t p, int64_t c) __attribute__((always_inline)) {
      return value<S, true>(load32(acc + p * 16 + c), channel + c, residual + p * e_.residual.c_pitch + c);
    };
    for (int64_t p = 0; p < pixels; p += 2) {
      const int64_t q = smaller(p + 1, pixels - 1);  // an odd last pixel is computed twice
      Y both = pack<S>(half(p, 0), half(p, 8), half(q, 0), half(q, 8));
      if (lookup_) both = (*lookup_)(both);
      store16(out + p * e_.out.c_pitch, _mm256_castsi256_si128(both));
      store16(out + q * e_.out.c_pitch, _mm256_extracti128_si256(both, 1));
    }
  }

  void floats(const int32_t* acc, int64_t channel, int64_t index) const {
    const __m256 low = _mm256_set1_ps(e_.float_lo), high = _mm256_set1_ps(e_.float_hi);
    for (int64_t half = 0; half < 16; half += 8) {
      const Y mask = first_floats(e_.out.c - channel - half);
      const int64_t at = index * e_.out.c + channel + half;
      __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(load32(acc + half)), _mm256_loadu_ps(e_.multiplier + channel + half));
      if (e_.float_residual) v = _mm256_add_ps(v, _mm256_maskload_ps(e_.float_residual + at, mask));
      // A residual may hold NaN, which stays (float_limits.h).
      _mm256_maskstore_ps(e_.float_out + at, mask, _mm256_min_ps(high, _mm256_max_ps(low, v)));
    }
  }

  const Limits limits_;
  const __m256 mid_low_, mid_high_, mid_multiplier_, residual_multiplier_;
  const Y residual_zero_;
  const Epilogue& e_;
  const Sum sum_;
  const bool bounded_;
  std::optional<Lookup> lookup_;
  std::optional<Function> function_;
};

}  // namespace
}  // namespace octet::kernels

// What the depthwise kernels share. A dot product multiplies four bytes per dword: here they are four taps of one
// channel ("quad"), interleaved from as many loads of 64 bytes by vpunpck. The unpacks interleave within 128-bit lanes;
// weights, start values and multipliers are brought into that order once per block, and vpackssdw/vpackuswb of the
// epilogue undo it.
//
// A vector holds 64 channels of one pixel, or, where fewer are left, 32 of two or 16 of four pixels ("parts").
#pragma once
#include "engine/kernels/avx512_vnni/finish.h"
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

struct Quad {
  Z v[4];
};

OCTET_INLINE Quad interleave(Z t0, Z t1, Z t2, Z t3) {
  const Z l01 = _mm512_unpacklo_epi8(t0, t1), h01 = _mm512_unpackhi_epi8(t0, t1);
  const Z l23 = _mm512_unpacklo_epi8(t2, t3), h23 = _mm512_unpackhi_epi8(t2, t3);
  return {{_mm512_unpacklo_epi16(l01, l23), _mm512_unpackhi_epi16(l01, l23), _mm512_unpacklo_epi16(h01, h23),
           _mm512_unpackhi_epi16(h01, h23)}};
}

// Four vectors of 16 dwords in channel order -> the order in which interleave() leaves the channels.
OCTET_INLINE void to_lane_order(const Z (&n)[4], Z (&out)[4]) {
  const Z a = _mm512_shuffle_i32x4(n[0], n[1], 0x44), b = _mm512_shuffle_i32x4(n[0], n[1], 0xee);
  const Z c = _mm512_shuffle_i32x4(n[2], n[3], 0x44), d = _mm512_shuffle_i32x4(n[2], n[3], 0xee);
  out[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  out[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
  out[2] = _mm512_shuffle_i32x4(b, d, 0x88);
  out[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

// From an accumulator to a code; what is known of the numbers allows shorter ways to the same byte.
//   kClamped  always right
//   kScale    scaled sums fit an int32 (Constants::bounded), so they need no upper limit before the conversion
//   kTable    kScale, then the table
//   kLines    kScale, then the function of steps on lines (Constants::lines)
//   kShortLines  the same by lines_shortcut()
//   kFunction kScale, then any function of steps
//   kRelu     relu_shortcut()
enum class Finish { kClamped, kScale, kTable, kLines, kShortLines, kFunction, kRelu };

constexpr int64_t kMaxQuads = 32;

// Everything that belongs to one vector of channels.
struct alignas(64) Block {
  Z weights[kMaxQuads][4];
  Z start[4];
  __m512 multiplier[4];
  __m512 offset[4];                           // kRelu and kShortLines: what sums start with, times -multiplier
  __mmask64 mask;                             // bytes to store
  int64_t in_part[4] = {}, out_part[4] = {};  // bytes from the first part's pixel to that of the others
};

// Fills blocks from the arguments of a convolution.
struct BlockMaker {
  const ConvArgs& args;
  int64_t padded;       // channels, a multiple of 16
  int64_t channel = 0;  // first of the block
  int64_t part = 64;    // channels in a part of the vector: 64, 32 or 16

  // Channel of the i-th 16 bytes, or -1.
  OCTET_INLINE int64_t source(int64_t i) const {
    const int64_t c = channel + i * 16 % part;
    return c < padded ? c : -1;
  }
  // The weights of a tap; zeros outside the kernel.
  OCTET_INLINE Z tap(int64_t ky, int64_t kx) const {
    const ConvGeometry& g = args.geometry;
    if (ky < 0 || ky >= g.kernel_h || kx < 0 || kx >= g.kernel_w) return _mm512_setzero_si512();
    const int8_t* w = args.weights + (ky * g.kernel_w + kx) * padded;
    if (part == 64 && channel + 64 <= padded) return _mm512_loadu_si512(w + channel);
    alignas(64) int8_t bytes[64] = {};
    for (int64_t i = 0; i < 4; ++i)
      if (source(i) >= 0) store16(bytes + i * 16, load16(w + source(i)));
    return _mm512_load_si512(bytes);
  }
  OCTET_INLINE void set_weights(Z (&out)[4], Z t0, Z t1, Z t2, Z t3) const {
    const Quad q = interleave(t0, t1, t2, t3);
    for (int i = 0; i < 4; ++i) out[i] = q.v[i];
  }
  // Start values, multipliers and the mask.
  void set_epilogue(Block& b, Finish finish) const {
    Z start[4], multiplier[4], ordered[4];
    int real = 0;
    const bool relu = finish == Finish::kRelu, lines = finish == Finish::kShortLines;
    const Z base = _mm512_set1_epi32(relu ? kBitsOfTwo23 : lines ? kBitsOfMiddle : 0);
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t c = source(i);
      real += c >= 0;
      start[i] = c < 0 ? base : _mm512_add_epi32(_mm512_loadu_si512(args.acc_init + c), base);
      multiplier[i] = c < 0 ? _mm512_setzero_si512() : _mm512_loadu_si512(args.epilogue.multiplier + c);
    }
    b.mask = real == 4 ? ~0ull : (1ull << (real * 16)) - 1;
    to_lane_order(start, b.start);
    to_lane_order(multiplier, ordered);
    for (int i = 0; i < 4; ++i) {
      b.multiplier[i] = _mm512_castsi512_ps(ordered[i]);
      b.offset[i] = _mm512_mul_ps(b.multiplier[i], _mm512_set1_ps(relu ? -8388608.0f : -kMiddle));
    }
  }
};

// 32 sums, in this order, as 16-bit codes; saturated, but before the limits of codes.
template <Finish F>
OCTET_INLINE Z words_of(Z sum0, Z sum1, const __m512* multiplier, const __m512* offset, const Constants& k) {
  const auto rounded = [&](Z sum, int i) __attribute__((always_inline)) {
    if constexpr (F == Finish::kRelu || F == Finish::kShortLines)
      return _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_castsi512_ps(sum), multiplier[i], offset[i]));
    if constexpr (F == Finish::kClamped) return scale<Sum::kNone>(sum, multiplier[i], nullptr, k);
    const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), multiplier[i]);
    if (F == Finish::kFunction && k.tails) return _mm512_cvtps_epi32(draw_in(v, k.function));
    return _mm512_cvtps_epi32(v);
  };
  const Z words = _mm512_packs_epi32(rounded(sum0, 0), rounded(sum1, 1));
  constexpr bool kNoZeroPoint =
      F == Finish::kRelu || F == Finish::kLines || F == Finish::kShortLines || F == Finish::kFunction;
  return kNoZeroPoint ? words : _mm512_adds_epi16(words, k.zero_point16);
}

// 64 codes from two such halves.
template <Finish F>
OCTET_INLINE Z codes_of_words(Z low, Z high, const Constants& k, const uint8_t* table) {
  if constexpr (F == Finish::kLines || F == Finish::kShortLines) return line_codes<true>(low, high, k.lines);
  if constexpr (F == Finish::kFunction) return function_codes(low, high, k.function);
  const Z q = _mm512_packus_epi16(low, high);
  if constexpr (F == Finish::kRelu) return _mm512_min_epu8(q, k.high8);
  const Z limited = _mm512_min_epu8(_mm512_max_epu8(q, k.low8), k.high8);
  return F == Finish::kTable ? look_up64(limited, table) : limited;
}

// 64 codes.
template <Finish F>
OCTET_INLINE Z codes(const Z (&acc)[4], const Block& b, const Constants& k, const uint8_t* table) {
  return codes_of_words<F>(words_of<F>(acc[0], acc[1], b.multiplier, b.offset, k),
                           words_of<F>(acc[2], acc[3], b.multiplier + 2, b.offset + 2, k), k, table);
}

}  // namespace
}  // namespace octet::kernels

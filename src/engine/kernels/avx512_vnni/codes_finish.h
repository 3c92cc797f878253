// The finish of a tile of codes without a residual, in registers: from its products to its codes without a way through
// memory.
#pragma once
#include "engine/kernels/avx512_vnni/finish.h"

namespace octet::kernels {
namespace {

// What a tile of codes without a residual needs to go from its products to its codes in registers.
struct alignas(64) CodesFinish {
  int32_t start[4 * 16];
  float multiplier[4 * 16],
      offset[4 * 16];  // offset: for kRelu and kShortLines, what sums start with, times -multiplier
  Constants constants;
  int64_t out_pixel = 0;
};

// How: see relu_shortcut(); else the numbers are bounded, and the codes are 0..255 with zero point 0, or with another,
// or have limits, or these and then the table (Constants::table), or are the function of steps: on lines with
// lines_shortcut(), on lines, or any. A way of its own each, for what is asked in the loop.
enum class Finish { kRelu, kPlain, kAllCodes, kAny, kTable, kShortLines, kLines, kFunction };
constexpr int kFinishes = 8;

OCTET_INLINE Finish choose_finish(bool relu, const Epilogue& e, const Constants& c) {
  if (relu) return Finish::kRelu;
  if (c.lines.rows) return lines_shortcut(e) ? Finish::kShortLines : Finish::kLines;
  if (c.function) return Finish::kFunction;
  if (c.table) return Finish::kTable;
  return c.plain ? Finish::kPlain : c.all_codes ? Finish::kAllCodes : Finish::kAny;
}

// Whether the finish of these codes can be one of them.
OCTET_INLINE bool has_codes_finish(const Epilogue& e) {
  return e.out.data && !e.residual.data && (!e.table || has_vbmi()) && sums_are_bounded(e) && !e.function.has_tails();
}

// Takes over the numbers of `vectors` blocks of channels from block `block` on.
OCTET_INLINE void set_channels(CodesFinish& f, const ConvArgs& a, int64_t block, int vectors, Finish finish) {
  const bool relu = finish == Finish::kRelu, lines = finish == Finish::kShortLines;
  const Z base = _mm512_set1_epi32(relu ? kBitsOfTwo23 : lines ? kBitsOfMiddle : 0);
  const __m512 offset = _mm512_set1_ps(relu ? -8388608.0f : -kMiddle);
  for (int v = 0; v < vectors; ++v) {
    const int64_t channel = (block + v) * kChannelBlock;
    const __m512 m = _mm512_loadu_ps(a.epilogue.multiplier + channel);
    _mm512_store_si512(f.start + v * 16, _mm512_add_epi32(_mm512_loadu_si512(a.acc_init + channel), base));
    _mm512_store_ps(f.multiplier + v * 16, m);
    _mm512_store_ps(f.offset + v * 16, _mm512_mul_ps(m, offset));
  }
}

// P pixels of V blocks of channels, to `out` and every f.out_pixel bytes after it.
template <Finish F, int P, int V>
OCTET_INLINE void finish_in_registers(const Z (&acc)[P][V], const CodesFinish& f, uint8_t* out) {
  const auto rounded = [&](int p, int v) __attribute__((always_inline)) {
    const __m512 multiplier = _mm512_load_ps(f.multiplier + v * 16);
    if constexpr (F == Finish::kRelu || F == Finish::kShortLines)
      return _mm512_cvtps_epi32(
          _mm512_fmadd_ps(_mm512_castsi512_ps(acc[p][v]), multiplier, _mm512_load_ps(f.offset + v * 16)));
    // By hand: the compiler would convert some sums early, and spill others for it.
    Z value = acc[p][v];
    asm("vcvtdq2ps %[value], %[value]\n\t"
        "vmulps %[multiplier], %[value], %[value]\n\t"
        "vcvtps2dq %[value], %[value]"
        : [value] "+v"(value)
        : [multiplier] "m"(f.multiplier[v * 16]), "m"(f));
    return value;
  };
  const auto codes = [&](Z a, Z b, Z c, Z d) __attribute__((always_inline)) {
    Z low = _mm512_packs_epi32(a, b), high = _mm512_packs_epi32(c, d);
    if constexpr (F == Finish::kLines || F == Finish::kShortLines)
      return ordered_line_codes(low, high, f.constants.lines);
    if constexpr (F == Finish::kFunction)
      return _mm512_permutexvar_epi32(pack_order(), function_codes(low, high, f.constants.function));
    if constexpr (F == Finish::kAllCodes || F == Finish::kAny || F == Finish::kTable)
      low = _mm512_adds_epi16(low, f.constants.zero_point16), high = _mm512_adds_epi16(high, f.constants.zero_point16);
    const Z bytes = _mm512_permutexvar_epi32(pack_order(), _mm512_packus_epi16(low, high));
    if constexpr (F == Finish::kRelu) return _mm512_min_epu8(bytes, f.constants.high8);
    if constexpr (F != Finish::kAny && F != Finish::kTable) return bytes;
    const Z limited = _mm512_min_epu8(_mm512_max_epu8(bytes, f.constants.low8), f.constants.high8);
    return F == Finish::kTable ? look_up64(limited, f.constants.table) : limited;
  };
  if constexpr (V == 1) {
    static_assert(P % 4 == 0);
#pragma GCC unroll 16
    for (int p = 0; p < P; p += 4, out += 4 * f.out_pixel) {
      const Z q = codes(rounded(p, 0), rounded(p + 1, 0), rounded(p + 2, 0), rounded(p + 3, 0));
      store16(out, _mm512_castsi512_si128(q));
      store16(out + f.out_pixel, _mm512_extracti32x4_epi32(q, 1));
      store16(out + 2 * f.out_pixel, _mm512_extracti32x4_epi32(q, 2));
      store16(out + 3 * f.out_pixel, _mm512_extracti32x4_epi32(q, 3));
    }
  } else if constexpr (V == 2) {
    static_assert(P % 2 == 0);
#pragma GCC unroll 16
    for (int p = 0; p < P; p += 2, out += 2 * f.out_pixel) {
      const Z q = codes(rounded(p, 0), rounded(p, 1), rounded(p + 1, 0), rounded(p + 1, 1));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_castsi512_si256(q));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + f.out_pixel), _mm512_extracti64x4_epi64(q, 1));
    }
  } else {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p, out += f.out_pixel) {
      const Z third = rounded(p, 2);
      const Z q = codes(rounded(p, 0), rounded(p, 1), third, V == 4 ? rounded(p, V - 1) : third);
      if constexpr (V == 4) {
        _mm512_storeu_si512(out, q);
      } else {
        _mm512_mask_storeu_epi8(out, (1ull << 48) - 1, q);
      }
    }
  }
}

}  // namespace
}  // namespace octet::kernels

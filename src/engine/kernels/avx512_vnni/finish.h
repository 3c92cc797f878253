// From int32 accumulators to the output of a convolution: the Epilogue of int8_conv.h with 512-bit vectors, for the
// VNNI and the AMX kernels. Accumulators come from a small buffer [pixel][vectors * 16] that stays in the L1 cache.
#pragma once
#include "engine/kernels/avx512_vnni/lookup.h"
#include "engine/kernels/avx512_vnni/vector.h"
#include "engine/kernels/epilogue_shortcuts.h"

namespace octet::kernels {
namespace {

// One tile of output: `pixels` pixels, equally spaced, of `V` blocks of 16 channels from channel `channel` on.
struct FinishTile {
  const int32_t* acc = nullptr;
  int64_t pixels = 0;
  int64_t channel = 0;
  int64_t n = 0, y = 0, x = 0;  // first pixel; the others follow in the row, or in the rows after it if they are dense
};

// kRelu: see relu_shortcut(). kTwiceFused: kTwice with Epilogue::sum_fuses.
enum class Sum { kNone, kRelu, kOnce, kTwice, kTwiceFused };

// What is known of a layer's numbers, and saves instructions.
enum class Numbers {
  kAny,
  kBounded,     // no scaled sum leaves int32, so none needs a limit before the conversion
  kNoZeroPoint  // besides, the residual's zero point is 0
};

// From sums to codes, unless there is more to it: that part alone is what kernels copy that store codes.
struct SumConstants {
  __m512 mid_low, mid_high, mid_multiplier, residual_multiplier, high;
  __m512 residual_start, residual_correction;  // see residual_product()
  __m512 mid_start;                            // 2^23 + the zero point
  Z mid_zero_point;
  Z residual_zero_point, zero_point16, low8, high8;
  bool all_codes = false;  // 0..255: what saturation gives
  bool plain = false;      // besides, zero point 0
};
struct Constants : SumConstants {
  bool bounded = false;            // Numbers::kBounded
  const uint8_t* table = nullptr;  // applied in registers
  CodeFunction function;
  bool tails = false;  // of the function
  Lines lines;         // of the function, where it has some and they are quick
};

OCTET_INLINE Constants make_constants(const Epilogue& e) {
  Constants c;
  c.mid_low = _mm512_set1_ps(static_cast<float>(e.mid_lo - e.mid_zero_point));
  c.mid_high = _mm512_set1_ps(static_cast<float>(e.mid_hi - e.mid_zero_point));
  c.mid_multiplier = _mm512_set1_ps(e.mid_multiplier);
  c.residual_multiplier = _mm512_set1_ps(e.residual_multiplier);
  c.mid_start = _mm512_set1_ps(8388608.0f + static_cast<float>(e.mid_zero_point));
  c.mid_zero_point = _mm512_set1_epi32(e.mid_zero_point);
  c.residual_start = _mm512_set1_ps(8388608.0f + static_cast<float>(e.residual.zero_point));
  c.residual_correction = _mm512_set1_ps(-8388608.0f * e.residual_multiplier);
  c.residual_zero_point = _mm512_set1_epi32(e.residual.zero_point);
  c.high = _mm512_set1_ps(static_cast<float>(e.hi - e.out.zero_point));
  c.zero_point16 = _mm512_set1_epi16(static_cast<int16_t>(e.out.zero_point));
  c.low8 = _mm512_set1_epi8(static_cast<char>(e.lo));
  c.high8 = _mm512_set1_epi8(static_cast<char>(e.hi));
  c.bounded = sums_are_bounded(e) && !e.function.has_tails();  // else only scale() would have to draw them in
  c.all_codes = e.lo == 0 && e.hi == 255;
  c.plain = e.out.zero_point == 0 && c.all_codes;
  c.table = has_vbmi() ? e.table : nullptr;
  c.function = e.function;
  c.tails = e.function.has_tails();
  if (e.function.lines && has_vbmi()) c.lines = make_lines(e.function);
  return c;
}

// A byte b in the low bits of 2^23f is the float 2^23 + b. `places`: in each dword the index of its byte within the
// 128-bit lane.
OCTET_INLINE __m512 bytes_on_two23(Z bytes, Z places) {
  return _mm512_castsi512_ps(
      _mm512_mask_shuffle_epi8(_mm512_set1_epi32(kBitsOfTwo23), 0x1111111111111111, bytes, places));
}

// fl((r - zero_point) * multiplier) of 16 codes r, without a conversion. Without a zero point,
// fma(2^23 + r, m, -2^23 m) is that product in one instruction.
template <Numbers K>
OCTET_INLINE __m512 residual_product(const uint8_t* residual, const SumConstants& c) {
  const Z places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512 r = bytes_on_two23(_mm512_broadcast_i32x4(load16(residual)), places);
  if constexpr (K == Numbers::kNoZeroPoint) return _mm512_fmadd_ps(r, c.residual_multiplier, c.residual_correction);
  return _mm512_mul_ps(_mm512_sub_ps(r, c.residual_start), c.residual_multiplier);
}

// 16 outputs, rounded, before the zero point is added. Unless the numbers are bounded the upper limit is applied here,
// because too large a float has no int32; too small a one becomes INT32_MIN and saturates correctly in pack().
template <Sum S, Numbers K = Numbers::kAny, typename C>
OCTET_INLINE Z scale(Z acc, __m512 multiplier, const uint8_t* residual, const C& c) {
  __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(acc), multiplier);
  if constexpr (S == Sum::kTwice || S == Sum::kTwiceFused) {
    v = _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    v = _mm512_min_ps(_mm512_max_ps(v, c.mid_low), c.mid_high);
    if constexpr (S == Sum::kTwice) v = _mm512_mul_ps(v, c.mid_multiplier);
  }
  if constexpr (S == Sum::kTwiceFused) v = _mm512_fmadd_ps(v, c.mid_multiplier, residual_product<K>(residual, c));
  if constexpr (S == Sum::kOnce || S == Sum::kTwice) v = _mm512_add_ps(v, residual_product<K>(residual, c));
  if constexpr (K == Numbers::kAny)
    if (c.tails) v = draw_in(v, c.function);
  return _mm512_cvtps_epi32(K == Numbers::kAny ? _mm512_min_ps(v, c.high) : v);
}

// 64 codes in the order of the arguments.
OCTET_INLINE Z pack(Z a, Z b, Z c, Z d, const SumConstants& k) {
  Z low = _mm512_packs_epi32(a, b), high = _mm512_packs_epi32(c, d);
  if (k.plain) return _mm512_permutexvar_epi32(pack_order(), _mm512_packus_epi16(low, high));
  low = _mm512_adds_epi16(low, k.zero_point16), high = _mm512_adds_epi16(high, k.zero_point16);
  const Z bytes = _mm512_permutexvar_epi32(pack_order(), _mm512_packus_epi16(low, high));
  if (k.all_codes) return bytes;
  return _mm512_min_epu8(_mm512_max_epu8(bytes, k.low8), k.high8);
}

// The same with the function of these steps.
OCTET_INLINE Z pack_function(Z a, Z b, Z c, Z d, const Constants& k) {
  return _mm512_permutexvar_epi32(pack_order(),
                                  function_codes(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d), k.function));
}

// The same where there are lines.
OCTET_INLINE Z pack_lines(Z a, Z b, Z c, Z d, const Lines& lines) {
  return ordered_line_codes(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d), lines);
}

// Stores the 16 bytes of lane L, or 4 where a pixel has no more.
template <int L>
OCTET_INLINE void store_lane(uint8_t* p, Z v, bool four) {
  const __m128i lane = _mm512_extracti32x4_epi32(v, L);
  if (four) {
    _mm_storeu_si32(p, lane);
  } else {
    store16(p, lane);
  }
}

template <int V, Sum S, Numbers K>
OCTET_INLINE void finish_codes(const FinishTile& t, const Epilogue& e, const Constants& c) {
  const int64_t at = t.n * e.out.image_stride + t.y * e.out.row_stride + t.x * e.out.c_pitch + t.channel;
  uint8_t* out = e.out.data + at;
  const uint8_t* residual = nullptr;
  constexpr bool kResidual = S == Sum::kOnce || S == Sum::kTwice || S == Sum::kTwiceFused;
  if constexpr (kResidual)
    residual = e.residual.data + t.n * e.residual.image_stride + t.y * e.residual.row_stride +
               t.x * e.residual.c_pitch + t.channel;
  const int64_t step = e.out.c_pitch, residual_step = e.residual.c_pitch;
  __m512 m[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) m[v] = _mm512_loadu_ps(e.multiplier + t.channel + v * 16);
  const int32_t* acc = t.acc;
  Table64 table{};
  if (c.table) table = load_table(c.table);
  const auto packed = [&](Z v0, Z v1, Z v2, Z v3) __attribute__((always_inline)) {
    if constexpr (S == Sum::kRelu)
      return _mm512_min_epu8(_mm512_permutexvar_epi32(pack_order(), _mm512_packus_epi16(_mm512_packs_epi32(v0, v1),
                                                                                        _mm512_packs_epi32(v2, v3))),
                             c.high8);
    if (c.lines.rows) return pack_lines(v0, v1, v2, v3, c.lines);
    if (c.function) return pack_function(v0, v1, v2, v3, c);
    const Z q = pack(v0, v1, v2, v3, c);
    return c.table ? look_up64(q, table) : q;
  };
  const auto value = [&](int64_t pixel, int v) __attribute__((always_inline)) {
    if constexpr (S == Sum::kRelu) {
      const __m512 sum = _mm512_load_ps(reinterpret_cast<const float*>(acc) + (pixel * V + v) * 16);
      return _mm512_cvtps_epi32(_mm512_fmadd_ps(sum, m[v], _mm512_mul_ps(m[v], _mm512_set1_ps(-8388608.0f))));
    }
    const uint8_t* r = nullptr;
    if constexpr (kResidual) r = residual + pixel * residual_step + v * 16;
    return scale<S, K>(_mm512_loadu_si512(acc + (pixel * V + v) * 16), m[v], r, c);
  };
  if constexpr (V >= 3) {
    for (int64_t p = 0; p < t.pixels; ++p) {
      const Z third = value(p, 2);
      const Z q = packed(value(p, 0), value(p, 1), third, V == 4 ? value(p, V - 1) : third);
      if constexpr (V == 4) {
        _mm512_storeu_si512(out + p * step, q);
      } else {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + p * step), _mm512_castsi512_si256(q));
        store16(out + p * step + 32, _mm512_extracti32x4_epi32(q, 2));
      }
    }
  } else if constexpr (V == 2) {
    for (int64_t p = 0; p < t.pixels; p += 2) {
      const int64_t q = smaller(p + 1, t.pixels - 1);
      const Z codes = packed(value(p, 0), value(p, 1), value(q, 0), value(q, 1));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + p * step), _mm512_castsi512_si256(codes));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + q * step), _mm512_extracti64x4_epi64(codes, 1));
    }
  } else {
    const bool four = step < 16;
    for (int64_t p = 0; p < t.pixels; p += 4) {
      const int64_t last = t.pixels - 1, p1 = smaller(p + 1, last), p2 = smaller(p + 2, last),
                    p3 = smaller(p + 3, last);
      const Z codes = packed(value(p, 0), value(p1, 0), value(p2, 0), value(p3, 0));
      store_lane<0>(out + p * step, codes, four);
      store_lane<1>(out + p1 * step, codes, four);
      store_lane<2>(out + p2 * step, codes, four);
      store_lane<3>(out + p3 * step, codes, four);
    }
  }
}

template <int V>
OCTET_INLINE void finish_floats(const FinishTile& t, const Epilogue& e) {
  const __m512 low = _mm512_set1_ps(e.float_lo), high = _mm512_set1_ps(e.float_hi);
  for (int v = 0; v < V; ++v) {
    const int64_t channel = t.channel + v * 16;
    const int64_t lanes = smaller(16, e.out.c - channel);
    if (lanes <= 0) break;
    const auto mask = static_cast<__mmask16>((1u << lanes) - 1);
    const __m512 m = _mm512_loadu_ps(e.multiplier + channel);
    for (int64_t p = 0; p < t.pixels; ++p) {
      const int64_t at = ((t.n * e.out.h + t.y) * e.out.w + t.x + p) * e.out.c + channel;
      __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(t.acc + (p * V + v) * 16)), m);
      if (e.float_residual) y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(mask, e.float_residual + at));
      // A residual may hold NaN, which stays (float_limits.h).
      _mm512_mask_storeu_ps(e.float_out + at, mask, _mm512_min_ps(high, _mm512_max_ps(low, y)));
    }
  }
}

template <int V, Numbers K>
void finish_codes(const FinishTile& t, const Epilogue& e, const Constants& c) {
  if (e.residual.data == nullptr) {
    finish_codes<V, Sum::kNone, K>(t, e, c);
  } else if (e.rounds_twice && e.sum_fuses) {
    finish_codes<V, Sum::kTwiceFused, K>(t, e, c);
  } else if (e.rounds_twice) {
    finish_codes<V, Sum::kTwice, K>(t, e, c);
  } else {
    finish_codes<V, Sum::kOnce, K>(t, e, c);
  }
}

// A residual that is read in the same pass as the output is written may be the output itself: every pixel is read
// before it is written, except the repeated last pixel of an odd tile, whose codes are computed before any store.
template <int V>
OCTET_INLINE void finish(const FinishTile& t, const Epilogue& e, const Constants& c) {
  if (e.out.data == nullptr) return finish_floats<V>(t, e);
  if (c.bounded && e.residual.data && e.residual.zero_point == 0) {
    finish_codes<V, Numbers::kNoZeroPoint>(t, e, c);
  } else if (c.bounded) {
    finish_codes<V, Numbers::kBounded>(t, e, c);
  } else {
    finish_codes<V, Numbers::kAny>(t, e, c);
  }
  if (e.table && !c.table) {
    uint8_t* out = e.out.data + t.n * e.out.image_stride + t.y * e.out.row_stride + t.x * e.out.c_pitch + t.channel;
    const int64_t bytes = smaller(V * 16, e.out.c_pitch);
    for (int64_t p = 0; p < t.pixels; ++p) look_up(e.table, out + p * e.out.c_pitch, out + p * e.out.c_pitch, bytes);
  }
}

}  // namespace
}  // namespace octet::kernels

// From int32 accumulators to the output of a convolution: the Epilogue of int8_conv.h with 512-bit vectors, for the
// VNNI and the AMX kernels. Accumulators come from a small buffer [pixel][vectors * 16] that stays in the L1 cache.
#pragma once
#include "engine/kernels/avx512_vnni/lookup.h"
#include "engine/kernels/avx512_vnni/vector.h"
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {
namespace {

// One tile of output: `pixels` pixels, equally spaced, of `V` blocks of 16 channels from channel `channel` on.
struct FinishTile {
  const int32_t* acc = nullptr;
  int64_t pixels = 0;
  int64_t channel = 0;
  int64_t n = 0, y = 0, x = 0;  // first pixel; the others follow in the row, or in the rows after it if they are dense
};

enum class Sum { kNone, kOnce, kTwice };

struct Constants {
  __m512 mid_low, mid_high, mid_multiplier, residual_multiplier, high;
  Z residual_zero_point, zero_point16, low8, high8;
};

OCTET_INLINE Constants make_constants(const Epilogue& e) {
  Constants c;
  c.mid_low = _mm512_set1_ps(static_cast<float>(e.mid_lo - e.mid_zero_point));
  c.mid_high = _mm512_set1_ps(static_cast<float>(e.mid_hi - e.mid_zero_point));
  c.mid_multiplier = _mm512_set1_ps(e.mid_multiplier);
  c.residual_multiplier = _mm512_set1_ps(e.residual_multiplier);
  c.residual_zero_point = _mm512_set1_epi32(e.residual.zero_point);
  c.high = _mm512_set1_ps(static_cast<float>(e.hi - e.out.zero_point));
  c.zero_point16 = _mm512_set1_epi16(static_cast<int16_t>(e.out.zero_point));
  c.low8 = _mm512_set1_epi8(static_cast<char>(e.lo));
  c.high8 = _mm512_set1_epi8(static_cast<char>(e.hi));
  return c;
}

// 16 outputs, rounded, before the zero point is added. The upper limit is applied here, because too large a float has
// no int32; too small a one becomes INT32_MIN and saturates correctly in pack().
template <Sum S>
OCTET_INLINE Z scale(Z acc, __m512 multiplier, const uint8_t* residual, const Constants& c) {
  __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(acc), multiplier);
  if constexpr (S == Sum::kTwice) {
    v = _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    v = _mm512_mul_ps(_mm512_min_ps(_mm512_max_ps(v, c.mid_low), c.mid_high), c.mid_multiplier);
  }
  if constexpr (S != Sum::kNone) {
    const Z r = _mm512_sub_epi32(_mm512_cvtepu8_epi32(load16(residual)), c.residual_zero_point);
    v = _mm512_add_ps(v, _mm512_mul_ps(_mm512_cvtepi32_ps(r), c.residual_multiplier));
  }
  return _mm512_cvtps_epi32(_mm512_min_ps(v, c.high));
}

// 64 codes in the order of the arguments.
OCTET_INLINE Z pack(Z a, Z b, Z c, Z d, const Constants& k) {
  const Z low = _mm512_adds_epi16(_mm512_packs_epi32(a, b), k.zero_point16);
  const Z high = _mm512_adds_epi16(_mm512_packs_epi32(c, d), k.zero_point16);
  const Z bytes = _mm512_permutexvar_epi32(pack_order(), _mm512_packus_epi16(low, high));
  return _mm512_min_epu8(_mm512_max_epu8(bytes, k.low8), k.high8);
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

template <int V, Sum S>
OCTET_INLINE void finish_codes(const FinishTile& t, const Epilogue& e, const Constants& c) {
  const int64_t at = t.n * e.out.image_stride + t.y * e.out.row_stride + t.x * e.out.c_pitch + t.channel;
  uint8_t* out = e.out.data + at;
  const uint8_t* residual = nullptr;
  if constexpr (S != Sum::kNone)
    residual = e.residual.data + t.n * e.residual.image_stride + t.y * e.residual.row_stride +
               t.x * e.residual.c_pitch + t.channel;
  const int64_t step = e.out.c_pitch, residual_step = e.residual.c_pitch;
  __m512 m[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) m[v] = _mm512_loadu_ps(e.multiplier + t.channel + v * 16);
  const int32_t* acc = t.acc;
  const auto value = [&](int64_t pixel, int v) __attribute__((always_inline)) {
    const uint8_t* r = nullptr;
    if constexpr (S != Sum::kNone) r = residual + pixel * residual_step + v * 16;
    return scale<S>(_mm512_loadu_si512(acc + (pixel * V + v) * 16), m[v], r, c);
  };
  if constexpr (V >= 3) {
    for (int64_t p = 0; p < t.pixels; ++p) {
      const Z third = value(p, 2);
      const Z q = pack(value(p, 0), value(p, 1), third, V == 4 ? value(p, V - 1) : third, c);
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
      const Z codes = pack(value(p, 0), value(p, 1), value(q, 0), value(q, 1), c);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + p * step), _mm512_castsi512_si256(codes));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + q * step), _mm512_extracti64x4_epi64(codes, 1));
    }
  } else {
    const bool four = step < 16;
    for (int64_t p = 0; p < t.pixels; p += 4) {
      const int64_t last = t.pixels - 1, p1 = smaller(p + 1, last), p2 = smaller(p + 2, last),
                    p3 = smaller(p + 3, last);
      const Z codes = pack(value(p, 0), value(p1, 0), value(p2, 0), value(p3, 0), c);
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
      _mm512_mask_storeu_ps(e.float_out + at, mask, _mm512_min_ps(_mm512_max_ps(y, low), high));
    }
  }
}

// A residual that is read in the same pass as the output is written may be the output itself: every pixel is read
// before it is written, except the repeated last pixel of an odd tile, whose codes are computed before any store.
template <int V>
OCTET_INLINE void finish(const FinishTile& t, const Epilogue& e, const Constants& c) {
  if (e.out.data == nullptr) return finish_floats<V>(t, e);
  if (e.residual.data == nullptr) {
    finish_codes<V, Sum::kNone>(t, e, c);
  } else if (e.rounds_twice) {
    finish_codes<V, Sum::kTwice>(t, e, c);
  } else {
    finish_codes<V, Sum::kOnce>(t, e, c);
  }
  if (e.table) {
    uint8_t* out = e.out.data + t.n * e.out.image_stride + t.y * e.out.row_stride + t.x * e.out.c_pitch + t.channel;
    const int64_t bytes = smaller(V * 16, e.out.c_pitch);
    for (int64_t p = 0; p < t.pixels; ++p) look_up(e.table, out + p * e.out.c_pitch, out + p * e.out.c_pitch, bytes);
  }
}

}  // namespace
}  // namespace octet::kernels

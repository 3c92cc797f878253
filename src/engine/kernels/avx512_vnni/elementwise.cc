// Sums, products and copies of u8 tensors with 512-bit vectors.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/lines.h"

namespace octet::kernels {
namespace {

// Calls line(a, b, out, bytes) for the rows' lines; b repeats its one pixel where it is broadcast.
template <typename Line>
OCTET_INLINE void for_each_line(const QTensor& a, const QTensor& b, const QTensor& out, Range rows, Line&& line) {
  const int64_t bytes = written_bytes(out);
  const bool one_pixel = b.h == 1 && b.w == 1;
  const bool dense = a.c_pitch == bytes && out.c_pitch == bytes && (one_pixel ? out.w == 1 : b.c_pitch == bytes);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* left = row_of(a, r);
    const uint8_t* right = b.data + (b.n == 1 ? 0 : r / out.h) * b.image_stride;
    if (!one_pixel) right += r % out.h * b.row_stride;
    uint8_t* to = row_of(out, r);
    if (dense) {
      line(left, right, to, bytes * out.w);
      continue;
    }
    const int64_t right_step = one_pixel ? 0 : b.c_pitch;
    for (int64_t x = 0; x < out.w; ++x) line(left + x * a.c_pitch, right + x * right_step, to + x * out.c_pitch, bytes);
  }
}

// 64 codes -> four vectors of 16 dwords minus the zero point.
OCTET_INLINE void widen(Z codes, Z zero_point, Z (&out)[4]) {
  out[0] = _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(codes)), zero_point);
  out[1] = _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 1)), zero_point);
  out[2] = _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 2)), zero_point);
  out[3] = _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 3)), zero_point);
}

// out = pack(combine(a, b)) of every pair of codes, less their zero points, as 16 floats at a time.
template <typename Args, typename Combine>
OCTET_INLINE void combine_lines(const Args& a, Range rows, const Constants& k, const uint8_t* table,
                                const Combine& combine) {
  const Z az = _mm512_set1_epi32(a.a.zero_point), bz = _mm512_set1_epi32(a.b.zero_point);
  for_each_line(a.a, a.b, a.out, rows, [&](const uint8_t* left, const uint8_t* right, uint8_t* out, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) {
      const __mmask64 mask = first_bytes(bytes - i);
      Z x[4], y[4];
      widen(_mm512_maskz_loadu_epi8(mask, left + i), az, x);
      widen(_mm512_maskz_loadu_epi8(mask, right + i), bz, y);
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g)
        x[g] = _mm512_cvtps_epi32(_mm512_min_ps(combine(_mm512_cvtepi32_ps(x[g]), _mm512_cvtepi32_ps(y[g])), k.high));
      _mm512_mask_storeu_epi8(out + i, mask, pack(x[0], x[1], x[2], x[3], k));
    }
    if (table) look_up(table, out, out, bytes);
  });
}

}  // namespace

void add_avx512(const AddArgs& a, Range rows) {
  const __m512 am = _mm512_set1_ps(a.a_multiplier), bm = _mm512_set1_ps(a.b_multiplier);
  combine_lines(
      a, rows, limits(a.lo, a.hi, a.out.zero_point), a.table, [&](__m512 x, __m512 y) __attribute__((always_inline)) {
        return _mm512_add_ps(_mm512_mul_ps(x, am), _mm512_mul_ps(y, bm));
      });
}

namespace {

// One value of `b` per channel (squeeze and excite): float(q_a) * f + o with f = q_b - z_b and o = -z_a * f is the
// exact product, all of it integers below 2^24. With a moderate multiplier no product leaves int32.
constexpr float kMaxMultiplier = 32768;

// 64 channels in Groups * 16 of which `mask` exist.
template <int Groups>
struct ChannelFactors {
  __m512 factor[Groups], offset[Groups], multiplier;
  const Constants k;

  ChannelFactors(const MulArgs& a, const uint8_t* right)
      : multiplier(_mm512_set1_ps(a.multiplier)), k(limits(a.lo, a.hi, a.out.zero_point)) {
    const __m512 zero_point = _mm512_set1_ps(static_cast<float>(-a.a.zero_point));
    const Z right_zero_point = _mm512_set1_epi32(a.b.zero_point);
    for (int g = 0; g < Groups; ++g) {
      factor[g] = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_cvtepu8_epi32(load16(right + g * 16)), right_zero_point));
      offset[g] = _mm512_mul_ps(factor[g], zero_point);
    }
  }
  OCTET_INLINE Z codes(const uint8_t* left) const {
    Z v[4];
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g) {
      const __m512 q = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load16(left + g * 16)));
      v[g] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_fmadd_ps(q, factor[g], offset[g]), multiplier));
    }
#pragma GCC unroll 4
    for (int g = Groups; g < 4; ++g) v[g] = v[0];
    return pack(v[0], v[1], v[2], v[3], k);
  }
};

// Channels [c, c + Groups * 16) of rows of one image.
template <int Groups>
void mul_channels(const MulArgs& a, Range rows, const uint8_t* right, int64_t c) {
  const ChannelFactors<Groups> factors(a, right + c);
  constexpr __mmask64 kMask = Groups == 4 ? ~0ull : (1ull << (Groups * 16 % 64)) - 1;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* left = row_of(a.a, r) + c;
    uint8_t* out = row_of(a.out, r) + c;
    for (int64_t x = 0; x < a.out.w; ++x, left += a.a.c_pitch, out += a.out.c_pitch) {
      const Z q = factors.codes(left);
      if constexpr (Groups == 4) {
        _mm512_storeu_si512(out, q);
      } else {
        _mm512_mask_storeu_epi8(out, kMask, q);
      }
    }
  }
}

// Pixels of 16 or 32 bytes: four or two of them at a time.
void mul_small_pixels(const MulArgs& a, Range rows, const uint8_t* right) {
  uint8_t repeated[64];
  for (int64_t i = 0; i < 64; ++i) repeated[i] = right[i % a.out.c_pitch];
  const ChannelFactors<4> factors(a, repeated);
  const int64_t bytes = a.out.w * a.out.c_pitch;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* left = row_of(a.a, r);
    uint8_t* out = row_of(a.out, r);
    int64_t i = 0;
    for (; i + 64 <= bytes; i += 64) _mm512_storeu_si512(out + i, factors.codes(left + i));
    if (i < bytes) _mm512_mask_storeu_epi8(out + i, first_bytes(bytes - i), factors.codes(left + i));
  }
}

void mul_by_channel(const MulArgs& a, Range rows) {
  const int64_t bytes = written_bytes(a.out);
  const bool small = a.out.c_pitch <= 32 && bytes == a.out.c_pitch && a.a.c_pitch == a.out.c_pitch;
  for (int64_t r = rows.begin; r < rows.end;) {
    const int64_t n = r / a.out.h;
    const Range part{r, smaller(rows.end, (n + 1) * a.out.h)};
    const uint8_t* right = a.b.data + (a.b.n == 1 ? 0 : n) * a.b.image_stride;
    if (small) mul_small_pixels(a, part, right);
    for (int64_t c = 0; c < bytes && !small; c += 64) {
      switch (bytes - c) {
        case 16:
          mul_channels<1>(a, part, right, c);
          break;
        case 32:
          mul_channels<2>(a, part, right, c);
          break;
        case 48:
          mul_channels<3>(a, part, right, c);
          break;
        default:
          mul_channels<4>(a, part, right, c);
      }
    }
    r = part.end;
  }
}

}  // namespace

void mul_avx512(const MulArgs& a, Range rows) {
  if (a.b.h == 1 && a.b.w == 1 && a.out.c_pitch >= 16 && a.multiplier < kMaxMultiplier &&
      a.multiplier > -kMaxMultiplier)
    return mul_by_channel(a, rows);
  const __m512 m = _mm512_set1_ps(a.multiplier);
  combine_lines(
      a, rows, limits(a.lo, a.hi, a.out.zero_point), nullptr, [&](__m512 x, __m512 y) __attribute__((always_inline)) {
        // Products of two 9-bit numbers are exact in float.
        return _mm512_mul_ps(_mm512_mul_ps(x, y), m);
      });
}

void copy_avx512(const CopyArgs& a, Range rows) {
  const bool dense = a.in.c_pitch == a.out.c && a.out.c_pitch == a.out.c;
  const auto line = [&](const uint8_t* in, uint8_t* out, int64_t bytes) {
    if (a.table) return look_up(a.table, in, out, bytes);
    for (int64_t i = 0; i < bytes; i += 64) {
      const __mmask64 mask = first_bytes(bytes - i);
      _mm512_mask_storeu_epi8(out + i, mask, _mm512_maskz_loadu_epi8(mask, in + i));
    }
  };
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = row_of(a.in, r);
    uint8_t* out = row_of(a.out, r);
    if (dense) {
      line(in, out, a.out.w * a.out.c);
      continue;
    }
    for (int64_t x = 0; x < a.out.w; ++x) line(in + x * a.in.c_pitch, out + x * a.out.c_pitch, a.out.c);
  }
}

// 64 channels at a time, so that their numbers stay in registers.
void scale_shift_codes_avx512(const ScaleShiftCodesArgs& a, Range rows) {
  const Constants k = limits(a.lo, a.hi, 0);
  for (int64_t c = 0; c < a.out.c; c += 64) {
    const __mmask64 mask = first_bytes(a.out.c - c);
    __m512 m[4], b[4];
    for (int64_t g = 0; g < 4; ++g) {
      const auto some = static_cast<__mmask16>(mask >> (16 * g));
      m[g] = _mm512_maskz_loadu_ps(some, a.multiplier + c + 16 * g);
      b[g] = _mm512_maskz_loadu_ps(some, a.offset + c + 16 * g);
    }
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* in = row_of(a.in, r) + c;
      uint8_t* out = row_of(a.out, r) + c;
      for (int64_t x = 0; x < a.out.w; ++x, in += a.in.c_pitch, out += a.out.c_pitch) {
        Z v[4];
        widen(_mm512_maskz_loadu_epi8(mask, in), _mm512_setzero_si512(), v);
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g)
          v[g] = _mm512_cvtps_epi32(_mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(v[g]), m[g]), b[g]));
        _mm512_mask_storeu_epi8(out, mask, pack(v[0], v[1], v[2], v[3], k));
      }
    }
  }
}

}  // namespace octet::kernels

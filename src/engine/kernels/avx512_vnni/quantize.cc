// Between float images and u8 tensors, with 512-bit vectors.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

// numerics::quantize of 16 floats: a true division, round to nearest even, NaN -> zero point.
//
// vdivps is slow, so the quotient is found with the reciprocal r = fl(1 / s): q0 = fl(x r) is off by at most two units
// in the last place, q1 = fl(q0 + r (x - q0 s)) is one of the two floats around x / s, and q2 = fl(q1 + r (x - q1 s))
// is x / s correctly rounded (Markstein's theorem; Muller et al., Handbook of Floating-Point Arithmetic, 4.7). That
// needs x - q1 s to be exact, so no overflow and no underflow: scales are moderate (else kDivide), x is clamped before
// the division, where the limits give quotients that round to the limits of the codes, and a quotient below 1/4 becomes
// 0 whatever its last bits are.
enum class Quotient { kReciprocal, kDivide };

struct Rounding {
  __m512 scale, reciprocal, least, most, low, high;
  Z zero_point, zero_points;  // in every dword, in every byte

  explicit Rounding(const numerics::QuantParams& p) {
    const float lo = static_cast<float>(p.qmin - p.zero_point), hi = static_cast<float>(p.qmax - p.zero_point);
    scale = _mm512_set1_ps(p.scale);
    reciprocal = _mm512_set1_ps(1.0f / p.scale);
    least = _mm512_set1_ps(lo * p.scale), most = _mm512_set1_ps(hi * p.scale);
    low = _mm512_set1_ps(lo), high = _mm512_set1_ps(hi);
    zero_point = _mm512_set1_epi32(p.zero_point);
    zero_points = _mm512_mullo_epi32(zero_point, _mm512_set1_epi32(0x01010101));
  }

  static Quotient quotient(const numerics::QuantParams& p) {
    return p.scale > 1e-18f && p.scale < 1e18f ? Quotient::kReciprocal : Quotient::kDivide;
  }

  // The code minus the zero point.
  template <Quotient Q>
  OCTET_INLINE Z steps(__m512 x) const {
    if constexpr (Q == Quotient::kDivide) {
      const __m512 v = _mm512_div_ps(x, scale);
      return _mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), _mm512_min_ps(_mm512_max_ps(v, low), high));
    }
    const __mmask16 number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    x = _mm512_min_ps(_mm512_max_ps(x, least), most);
    __m512 v = _mm512_mul_ps(x, reciprocal);
    v = _mm512_fmadd_ps(_mm512_fnmadd_ps(v, scale, x), reciprocal, v);
    v = _mm512_fmadd_ps(_mm512_fnmadd_ps(v, scale, x), reciprocal, v);
    return _mm512_maskz_cvtps_epi32(number, v);
  }

  // The quotient by one multiplication. NaN stays NaN. Only where quotient() is kReciprocal.
  OCTET_INLINE __m512 estimate(__m512 x) const {
    return _mm512_mul_ps(_mm512_min_ps(most, _mm512_max_ps(least, x)), reciprocal);
  }
  // Where, among `lanes`, an estimate is so far from the middle of two codes that it rounds as the quotient does: up to
  // 255, its two factors and the product are off by less than 2^-24 of it each, as is the quotient that is rounded. Not
  // of NaN.
  OCTET_INLINE static __mmask16 are_sure(__m512 v, __mmask16 lanes) {
    const __m512 rest = _mm512_sub_ps(v, _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return _mm512_mask_cmp_ps_mask(lanes, _mm512_abs_ps(rest), _mm512_set1_ps(0.5f - 0x1p-14f), _CMP_LT_OQ);
  }
};

// 16 floats `stride` apart, of which `mask` exist.
OCTET_INLINE __m512 load_strided(const float* p, int64_t stride, Z index, __mmask16 mask) {
  if (stride == 1) return _mm512_maskz_loadu_ps(mask, p);
  return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, index, p, 4);
}

OCTET_INLINE Z multiples(int64_t stride) {
  return _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                            _mm512_set1_epi32(static_cast<int32_t>(stride)));
}

constexpr int64_t kMaxStride = (int64_t{1} << 31) / 16 - 1;  // of a gather with 32-bit indices

// 16 pixels of C channels in planes -> a dword each.
template <Quotient Q, int C>
OCTET_INLINE Z image_pixels(const Rounding& q, const float* in, int64_t plane, __mmask16 mask) {
  __m512 x[C];
  Z steps[C];
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) x[c] = _mm512_maskz_loadu_ps(mask, in + c * plane);
  __mmask16 sure = 0;
  if constexpr (Q == Quotient::kReciprocal) {
    sure = 0xffff;
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      const __m512 v = q.estimate(x[c]);
      sure = Rounding::are_sure(v, sure);
      steps[c] = _mm512_cvtps_epi32(v);
    }
  }
  if (sure != 0xffff) [[unlikely]] {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) steps[c] = q.steps<Q>(x[c]);
  }
  Z pixels = q.zero_points;
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c)
    pixels = _mm512_add_epi32(pixels, _mm512_slli_epi32(steps[c], static_cast<unsigned>(8 * c)));
  return pixels;
}

// Bytes: images come from main memory, and the first convolution may run between one band of rows and the next.
constexpr int64_t kFetchedAhead = 8192;

template <Quotient Q, int C>
void image_row(const Rounding& rounding, const float* in, int64_t plane, uint8_t* out, int64_t width) {
  const Rounding q = rounding;  // stays in registers
  int64_t x = 0;
  for (; x + 16 <= width; x += 16) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c)
      __builtin_prefetch(reinterpret_cast<const char*>(in + x + c * plane) + kFetchedAhead, 0, 2);
    _mm512_storeu_si512(out + x * 4, image_pixels<Q, C>(q, in + x, plane, 0xffff));
  }
  if (x == width) return;
  const auto mask = static_cast<__mmask16>((1u << (width - x)) - 1);
  _mm512_mask_storeu_epi32(out + x * 4, mask, image_pixels<Q, C>(q, in + x, plane, mask));
}

template <Quotient Q>
void quantize_rows(const QuantizeArgs& a, Range rows) {
  const FloatStrides& s = a.in_strides;
  const Rounding q(a.params);
  const Z pixel_index = multiples(s.w), channel_index = multiples(s.c);
  using ImageRow = void(const Rounding&, const float*, int64_t, uint8_t*, int64_t);
  constexpr ImageRow* kImageRow[] = {nullptr, image_row<Q, 1>, image_row<Q, 2>, image_row<Q, 3>, image_row<Q, 4>};
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* in = a.in + r / a.out.h * s.n + r % a.out.h * s.h;
    uint8_t* out = a.out.data + r / a.out.h * a.out.image_stride + r % a.out.h * a.out.row_stride;
    if (a.out.c_pitch == 4 && s.w == 1) {
      kImageRow[a.out.c](q, in, s.c, out, a.out.w);
      continue;
    }
    if (a.out.c_pitch == 4) {
      for (int64_t x = 0; x < a.out.w; x += 16) {
        const auto mask = static_cast<__mmask16>((1u << smaller(16, a.out.w - x)) - 1);
        Z pixels = q.zero_points;
        for (int64_t c = 0; c < a.out.c; ++c) {
          const Z steps = q.steps<Q>(load_strided(in + x * s.w + c * s.c, s.w, pixel_index, mask));
          pixels = _mm512_add_epi32(pixels, _mm512_sll_epi32(steps, _mm_cvtsi64_si128(8 * c)));
        }
        _mm512_mask_storeu_epi32(out + x * 4, mask, pixels);
      }
      continue;
    }
    for (int64_t x = 0; x < a.out.w; ++x)
      for (int64_t c = 0; c < a.out.c; c += 16) {
        const auto mask = static_cast<__mmask16>((1u << smaller(16, a.out.c - c)) - 1);
        const Z code =
            _mm512_add_epi32(q.steps<Q>(load_strided(in + x * s.w + c * s.c, s.c, channel_index, mask)), q.zero_point);
        _mm512_mask_cvtepi32_storeu_epi8(out + x * a.out.c_pitch + c, mask, code);
      }
  }
}

}  // namespace

void quantize_avx512(const QuantizeArgs& a, Range rows) {
  if (a.in_strides.w > kMaxStride || a.in_strides.c > kMaxStride) return kernels(Isa::kScalar).quantize(a, rows);
  if (Rounding::quotient(a.params) == Quotient::kReciprocal) {
    quantize_rows<Quotient::kReciprocal>(a, rows);
  } else {
    quantize_rows<Quotient::kDivide>(a, rows);
  }
}

void dequantize_avx512(const DequantizeArgs& a, Range rows) {
  const FloatStrides& s = a.out_strides;
  if (s.c > kMaxStride) return kernels(Isa::kScalar).dequantize(a, rows);
  const __m512 scale = _mm512_set1_ps(a.scale);
  const Z zero_point = _mm512_set1_epi32(a.in.zero_point), index = multiples(s.c);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* in = a.in.data + r / a.in.h * a.in.image_stride + r % a.in.h * a.in.row_stride;
    float* out = a.out + r / a.in.h * s.n + r % a.in.h * s.h;
    for (int64_t x = 0; x < a.in.w; ++x)
      for (int64_t c = 0; c < a.in.c; c += 16) {
        const auto mask = static_cast<__mmask16>((1u << smaller(16, a.in.c - c)) - 1);
        const Z code = _mm512_sub_epi32(_mm512_cvtepu8_epi32(load16(in + x * a.in.c_pitch + c)), zero_point);
        const __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(code), scale);
        float* to = out + x * s.w + c * s.c;
        if (s.c == 1) {
          _mm512_mask_storeu_ps(to, mask, y);
        } else {
          _mm512_mask_i32scatter_ps(to, mask, index, y, 4);
        }
      }
  }
}

}  // namespace octet::kernels

// Between float images and u8 tensors, with 512-bit vectors.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

struct Rounding {
  __m512 scale, low, high;
  Z zero_point;

  // numerics::quantize of 16 floats: a true division, round to nearest even, NaN -> zero point.
  OCTET_INLINE Z codes(__m512 x) const {
    const __m512 v = _mm512_div_ps(x, scale);
    const __mmask16 number = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);
    const Z q = _mm512_maskz_cvtps_epi32(number, _mm512_min_ps(_mm512_max_ps(v, low), high));
    return _mm512_add_epi32(q, zero_point);
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

}  // namespace

void quantize_avx512(const QuantizeArgs& a, Range rows) {
  const FloatStrides& s = a.in_strides;
  if (s.w > kMaxStride || s.c > kMaxStride) return kernels(Isa::kScalar).quantize(a, rows);
  const Rounding q{
      _mm512_set1_ps(a.params.scale), _mm512_set1_ps(static_cast<float>(a.params.qmin - a.params.zero_point)),
      _mm512_set1_ps(static_cast<float>(a.params.qmax - a.params.zero_point)), _mm512_set1_epi32(a.params.zero_point)};
  const Z pixel_index = multiples(s.w), channel_index = multiples(s.c);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* in = a.in + r / a.out.h * s.n + r % a.out.h * s.h;
    uint8_t* out = a.out.data + r / a.out.h * a.out.image_stride + r % a.out.h * a.out.row_stride;
    if (a.out.c_pitch == 4) {  // images: 16 pixels at a time, one dword each
      for (int64_t x = 0; x < a.out.w; x += 16) {
        const auto mask = static_cast<__mmask16>((1u << smaller(16, a.out.w - x)) - 1);
        Z pixels = _mm512_setzero_si512();
        for (int64_t c = 3; c >= 0; --c) {
          const Z code =
              c < a.out.c ? q.codes(load_strided(in + x * s.w + c * s.c, s.w, pixel_index, mask)) : q.zero_point;
          pixels = _mm512_or_si512(_mm512_slli_epi32(pixels, 8), code);
        }
        _mm512_mask_storeu_epi32(out + x * 4, mask, pixels);
      }
      continue;
    }
    for (int64_t x = 0; x < a.out.w; ++x)
      for (int64_t c = 0; c < a.out.c; c += 16) {
        const auto mask = static_cast<__mmask16>((1u << smaller(16, a.out.c - c)) - 1);
        const Z code = q.codes(load_strided(in + x * s.w + c * s.c, s.c, channel_index, mask));
        _mm512_mask_cvtepi32_storeu_epi8(out + x * a.out.c_pitch + c, mask, code);
      }
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

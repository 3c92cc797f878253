// From floats to u8 tensors, with 256-bit vectors.
#include <cstring>

#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/lines.h"

namespace octet::kernels {
namespace {

// numerics::quantize of 8 floats: a true division, round to nearest even, NaN -> zero point.
struct Rounding {
  __m256 scale, low, high;
  __m256 reciprocal, least, most;  // of the estimate
  bool estimates;                  // whether the scale is moderate enough for it
  Y zero_point;

  explicit Rounding(const numerics::QuantParams& p) {
    const float lo = static_cast<float>(p.qmin - p.zero_point), hi = static_cast<float>(p.qmax - p.zero_point);
    scale = _mm256_set1_ps(p.scale), low = _mm256_set1_ps(lo), high = _mm256_set1_ps(hi);
    reciprocal = _mm256_set1_ps(1.0f / p.scale);
    least = _mm256_set1_ps(lo * p.scale), most = _mm256_set1_ps(hi * p.scale);
    estimates = p.scale > 1e-18f && p.scale < 1e18f;
    zero_point = _mm256_set1_epi32(p.zero_point);
  }

  // The code minus the zero point.
  OCTET_INLINE Y steps(__m256 x) const {
    const __m256 v = _mm256_div_ps(x, scale), number = _mm256_cmp_ps(v, v, _CMP_ORD_Q);
    const Y rounded = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, low), high));
    return _mm256_and_si256(rounded, _mm256_castps_si256(number));
  }
  OCTET_INLINE Y codes(__m256 x) const { return _mm256_add_epi32(steps(x), zero_point); }

  // The quotient by one multiplication, about four times as fast as a division. NaN stays NaN.
  OCTET_INLINE __m256 estimate(__m256 x) const {
    return _mm256_mul_ps(_mm256_min_ps(most, _mm256_max_ps(least, x)), reciprocal);
  }
  // Where an estimate is so far from the middle of two codes that it rounds as the quotient does: up to 255, its two
  // factors and the product are off by less than 2^-24 of it each, as is the quotient that is rounded. Not of NaN.
  OCTET_INLINE static __m256 is_sure(__m256 v) {
    const __m256 rest = _mm256_sub_ps(v, _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    return _mm256_cmp_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), rest), _mm256_set1_ps(0.5f - 0x1p-14f), _CMP_LT_OQ);
  }
};

// 8 pixels of C channels in planes -> a dword each.
template <int C, typename Load>
OCTET_INLINE Y image_pixels(const Rounding& q, const Load& load) {
  Y steps[C];
  bool sure = q.estimates;
  if (sure) {
    __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      const __m256 v = q.estimate(load(c));
      all = _mm256_and_ps(all, Rounding::is_sure(v));
      steps[c] = _mm256_cvtps_epi32(v);
    }
    sure = _mm256_movemask_ps(all) == 0xff;
  }
  if (!sure) [[unlikely]] {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) steps[c] = q.steps(load(c));
  }
  Y pixels = _mm256_mullo_epi32(q.zero_point, _mm256_set1_epi32(0x01010101));
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) pixels = _mm256_add_epi32(pixels, _mm256_slli_epi32(steps[c], 8 * c));
  return pixels;
}

// 32 neighbors -> 32 codes.
OCTET_INLINE Y neighbors(const Rounding& q, const float* in) {
  Y steps[4];
  bool sure = q.estimates;
  if (sure) {
    __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256 v = q.estimate(_mm256_loadu_ps(in + i * 8));
      all = _mm256_and_ps(all, Rounding::is_sure(v));
      steps[i] = _mm256_cvtps_epi32(v);
    }
    sure = _mm256_movemask_ps(all) == 0xff;
  }
  if (!sure) [[unlikely]] {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) steps[i] = q.steps(_mm256_loadu_ps(in + i * 8));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) steps[i] = _mm256_add_epi32(steps[i], q.zero_point);
  // The packs work within 128-bit lanes: dwords of codes come out as 0 2 4 6 | 1 3 5 7.
  const Y codes = _mm256_packus_epi16(_mm256_packus_epi32(steps[0], steps[1]), _mm256_packus_epi32(steps[2], steps[3]));
  return _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Bytes: images come from main memory.
constexpr int64_t kFetchedAhead = 8192;

template <int C>
void image_row(const Rounding& rounding, const float* in, int64_t plane, uint8_t* out, int64_t width) {
  const Rounding q = rounding;  // stays in registers
  int64_t x = 0;
  for (; x + 8 <= width; x += 8) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c)
      __builtin_prefetch(reinterpret_cast<const char*>(in + x + c * plane) + kFetchedAhead, 0, 2);
    store32(out + x * 4,
            image_pixels<C>(
                q, [&](int c) __attribute__((always_inline)) { return _mm256_loadu_ps(in + x + c * plane); }));
  }
  if (x == width) return;
  const Y mask = first_floats(width - x);
  _mm256_maskstore_epi32(
      reinterpret_cast<int*>(out + x * 4), mask,
      image_pixels<C>(
          q, [&](int c) __attribute__((always_inline)) { return _mm256_maskload_ps(in + x + c * plane, mask); }));
}

}  // namespace

void quantize_avx2(const QuantizeArgs& a, Range rows) {
  const FloatStrides& s = a.in_strides;
  const bool image = a.out.c_pitch == 4 && s.w == 1;
  if (!image && s.c != 1) return kernels(Isa::kScalar).quantize(a, rows);
  const Rounding q(a.params);
  using ImageRow = void(const Rounding&, const float*, int64_t, uint8_t*, int64_t);
  constexpr ImageRow* kImageRow[] = {nullptr, image_row<1>, image_row<2>, image_row<3>, image_row<4>};
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* in = a.in + r / a.out.h * s.n + r % a.out.h * s.h;
    uint8_t* out = row_of(a.out, r);
    if (image) {
      kImageRow[a.out.c](q, in, s.c, out, a.out.w);
      continue;
    }
    for (int64_t x = 0; x < a.out.w; ++x) {
      int64_t c = 0;
      for (; c + 32 <= a.out.c; c += 32) store32(out + x * a.out.c_pitch + c, neighbors(q, in + x * s.w + c));
      for (; c < a.out.c; c += 8) {
        const Y dwords = q.codes(_mm256_maskload_ps(in + x * s.w + c, first_floats(a.out.c - c)));
        const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(dwords), _mm256_extracti128_si256(dwords, 1));
        alignas(16) uint8_t bytes[16];
        store16(bytes, _mm_packus_epi16(words, words));
        std::memcpy(out + x * a.out.c_pitch + c, bytes, static_cast<size_t>(smaller(8, a.out.c - c)));
      }
    }
  }
}

}  // namespace octet::kernels

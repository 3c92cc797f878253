// Pooling with 256-bit vectors. A pixel is worked on in blocks of 16 channels (or 4 bytes).
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/lines.h"

namespace octet::kernels {
namespace {

struct Taps {
  int64_t begin, end;
};
OCTET_INLINE Taps taps_inside(int64_t start, int64_t dilation, int64_t kernel, int64_t low, int64_t high) {
  Taps t{0, kernel};
  while (t.begin < t.end && start + t.begin * dilation < low) ++t.begin;
  while (t.end > t.begin && start + (t.end - 1) * dilation >= high) --t.end;
  return t;
}

}  // namespace

void max_pool_avx2(const MaxPoolArgs& a, Range rows) {
  const PoolWindow& p = a.window;
  const bool four = a.out.c_pitch < 16;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t y0 = r % a.out.h * p.stride_h - p.pad_top;
    const Taps ky = taps_inside(y0, p.dilation_h, p.kernel_h, 0, a.in.h);
    for (int64_t x = 0; x < a.out.w; ++x) {
      const int64_t x0 = x * p.stride_w - p.pad_left;
      const Taps kx = taps_inside(x0, p.dilation_w, p.kernel_w, 0, a.in.w);
      for (int64_t c = 0; c < a.out.c; c += 16) {
        __m128i best = _mm_setzero_si128();
        for (int64_t i = ky.begin; i < ky.end; ++i) {
          const uint8_t* in = a.in.data + r / a.out.h * a.in.image_stride + (y0 + i * p.dilation_h) * a.in.row_stride +
                              x0 * a.in.c_pitch + c;
          for (int64_t j = kx.begin; j < kx.end; ++j)
            best = _mm_max_epu8(best, load16(in + j * p.dilation_w * a.in.c_pitch));
        }
        store_codes(row_of(a.out, r) + x * a.out.c_pitch + c, best, four);
      }
    }
  }
}

void average_pool_avx2(const AveragePoolArgs& a, Range rows) {
  const PoolWindow& p = a.window;
  const Limits limits(a.lo, a.hi, a.out.zero_point);
  const bool four = a.out.c_pitch < 16;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t y0 = r % a.out.h * p.stride_h - p.pad_top;
    const Taps ky = taps_inside(y0, p.dilation_h, p.kernel_h, 0, a.in.h);
    const Taps all_y = taps_inside(y0, p.dilation_h, p.kernel_h, -p.pad_top, a.in.h + p.pad_bottom);
    for (int64_t x = 0; x < a.out.w; ++x) {
      const int64_t x0 = x * p.stride_w - p.pad_left;
      const Taps kx = taps_inside(x0, p.dilation_w, p.kernel_w, 0, a.in.w);
      const Taps all_x = taps_inside(x0, p.dilation_w, p.kernel_w, -p.pad_left, a.in.w + p.pad_right);
      const int64_t inside = (ky.end - ky.begin) * (kx.end - kx.begin);
      const int64_t all = a.count_include_pad ? (all_y.end - all_y.begin) * (all_x.end - all_x.begin) : inside;
      const float count = static_cast<float>(all > 1 ? all : 1);
      const __m256 m = _mm256_set1_ps(a.scale_in / (count * a.scale_out));  // numerics::average_multiplier
      const Y zero = _mm256_set1_epi32(static_cast<int32_t>(inside * a.in.zero_point));
      const uint8_t* image = a.in.data + r / a.out.h * a.in.image_stride;
      for (int64_t c = 0; c < a.out.c; c += 16) {
        Y sum0 = _mm256_setzero_si256(), sum1 = sum0;
        for (int64_t i = ky.begin; i < ky.end; ++i)
          for (int64_t j = kx.begin; j < kx.end; ++j) {
            const uint8_t* in =
                image + (y0 + i * p.dilation_h) * a.in.row_stride + (x0 + j * p.dilation_w) * a.in.c_pitch + c;
            sum0 = _mm256_add_epi32(sum0, _mm256_cvtepu8_epi32(load8(in)));
            sum1 = _mm256_add_epi32(sum1, _mm256_cvtepu8_epi32(load8(in + 8)));
          }
        const auto average = [&](Y sum) __attribute__((always_inline)) {
          return limits.round(_mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(sum, zero)), m));
        };
        store_codes(row_of(a.out, r) + x * a.out.c_pitch + c, limits.pack(average(sum0), average(sum1)), four);
      }
    }
  }
}

void global_average_avx2(const GlobalAverageArgs& a, Range blocks) {
  const int64_t per_image = (a.in.c + 15) / 16, pixels = a.in.h * a.in.w;
  const float count = static_cast<float>(static_cast<int32_t>(pixels));
  const __m256 m = _mm256_set1_ps(a.scale_in / (count * (a.out.data ? a.scale_out : 1.0f)));
  const Y zero = _mm256_set1_epi32(static_cast<int32_t>(pixels * a.in.zero_point));
  const Limits limits(a.lo, a.hi, a.out.zero_point);
  for (int64_t b = blocks.begin; b < blocks.end; ++b) {
    const int64_t n = b / per_image, c = b % per_image * 16;
    Y sum0 = _mm256_sub_epi32(_mm256_setzero_si256(), zero), sum1 = sum0;
    for (int64_t y = 0; y < a.in.h; ++y) {
      const uint8_t* in = a.in.data + n * a.in.image_stride + y * a.in.row_stride + c;
      for (int64_t x = 0; x < a.in.w; ++x, in += a.in.c_pitch) {
        const __m128i codes = load16(in);
        sum0 = _mm256_add_epi32(sum0, _mm256_cvtepu8_epi32(codes));
        sum1 = _mm256_add_epi32(sum1, _mm256_cvtepu8_epi32(_mm_srli_si128(codes, 8)));
      }
    }
    const __m256 v0 = _mm256_mul_ps(_mm256_cvtepi32_ps(sum0), m), v1 = _mm256_mul_ps(_mm256_cvtepi32_ps(sum1), m);
    if (a.out.data) {
      store_codes(a.out.data + n * a.out.image_stride + c, limits.pack(limits.round(v0), limits.round(v1)),
                  a.out.c_pitch < 16);
    } else {
      _mm256_maskstore_ps(a.float_out + n * a.in.c + c, first_floats(a.in.c - c), v0);
      _mm256_maskstore_ps(a.float_out + n * a.in.c + c + 8, first_floats(a.in.c - c - 8), v1);
    }
  }
}

}  // namespace octet::kernels

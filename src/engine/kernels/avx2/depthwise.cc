// Depthwise convolution with 256-bit vectors: 16 channels widened to 16 bits, two taps per vpmaddwd.
#include "engine/kernels/avx2/finish.h"
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMaxTaps = 64;  // larger kernels are left to the scalar code
constexpr int64_t kPixels = 8;    // of accumulators between two epilogues

}  // namespace

void depthwise_avx2(const ConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const int64_t taps = g.kernel_h * g.kernel_w, pairs = (taps + 1) / 2, padded = (g.out_channels + 15) / 16 * 16;
  if (taps > kMaxTaps) return kernels(Isa::kScalar).depthwise(a, rows);
  int64_t offset[kMaxTaps + 1];
  for (int64_t t = 0; t < taps; ++t)
    offset[t] = t / g.kernel_w * g.dilation_h * a.in.row_stride + t % g.kernel_w * g.dilation_w * a.in.c_pitch;
  offset[taps] = offset[taps - 1];  // the partner of an odd last tap has weight zero
  Y weights[(kMaxTaps + 1) / 2][2];
  const Finish finish(e);
  alignas(32) int32_t acc[kPixels * 16];
  for (int64_t c = 0; c < padded; c += 16) {
    for (int64_t i = 0; i < pairs; ++i) {
      const Y first = _mm256_cvtepi8_epi16(load16(a.weights + 2 * i * padded + c));
      const Y second = 2 * i + 1 < taps ? _mm256_cvtepi8_epi16(load16(a.weights + (2 * i + 1) * padded + c))
                                        : _mm256_setzero_si256();
      weights[i][0] = _mm256_unpacklo_epi16(first, second);
      weights[i][1] = _mm256_unpackhi_epi16(first, second);
    }
    // The unpacks interleave within 128-bit lanes: channels 0-3 and 8-11, 4-7 and 12-15.
    const Y init0 = load32(a.acc_init + c), init1 = load32(a.acc_init + c + 8);
    const Y start0 = _mm256_permute2x128_si256(init0, init1, 0x20),
            start1 = _mm256_permute2x128_si256(init0, init1, 0x31);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const int64_t n = r / e.out.h, y = r % e.out.h;
      const uint8_t* row = a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride -
                           g.pad_left * a.in.c_pitch + c;
      for (int64_t x = 0; x < e.out.w; x += kPixels) {
        const int64_t pixels = smaller(kPixels, e.out.w - x);
        for (int64_t p = 0; p < pixels; ++p) {
          const uint8_t* in = row + (x + p) * g.stride_w * a.in.c_pitch;
          Y sum0 = start0, sum1 = start1;
          for (int64_t i = 0; i < pairs; ++i) {
            const Y first = _mm256_cvtepu8_epi16(load16(in + offset[2 * i]));
            const Y second = _mm256_cvtepu8_epi16(load16(in + offset[2 * i + 1]));
            sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(_mm256_unpacklo_epi16(first, second), weights[i][0]));
            sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(_mm256_unpackhi_epi16(first, second), weights[i][1]));
          }
          store32(acc + p * 16, _mm256_permute2x128_si256(sum0, sum1, 0x20));
          store32(acc + p * 16 + 8, _mm256_permute2x128_si256(sum0, sum1, 0x31));
        }
        finish.row(acc, pixels, c, n, y, x);
      }
    }
  }
}

}  // namespace octet::kernels

// Row-run convolution with 256-bit vectors: tiles of pixels x 16 output channels. Dot supplies the register blocking:
//   static constexpr int kPixels;                       // accumulators: kPixels x 2 vectors
//   struct Weights; static Weights load(const int8_t*);  // one dword of 16 channels
//   static void add(Y& a0, Y& a1, int32_t four_bytes, const Weights&);
#pragma once
#include "engine/kernels/avx2/finish.h"
#include "engine/kernels/avx2/vector.h"
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {
namespace {

constexpr int64_t kPrefetch = 2048;  // bytes of weights ahead

struct Runs {
  int64_t pixel_step = 0, kernel_rows = 0, row_step = 0, segments_per_row = 0, tap_step = 0, dwords = 0;
};

template <typename Dot, int P>
void multiply(const Runs& r, const uint8_t* in, const int8_t* w, const int32_t* acc_init, int32_t* acc_out) {
  Y acc[P][2];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) acc[p][0] = load32(acc_init), acc[p][1] = load32(acc_init + 8);
  for (int64_t y = 0; y < r.kernel_rows; ++y)
    for (int64_t s = 0; s < r.segments_per_row; ++s) {
      const uint8_t* segment = in + y * r.row_step + s * r.tap_step;
      for (int64_t d = 0; d < r.dwords; ++d, w += 64) {
        if constexpr (P == 1) _mm_prefetch(w + kPrefetch, _MM_HINT_T0);  // one product a weight: it comes from afar
        const typename Dot::Weights weights = Dot::load(w);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
          int32_t four;
          std::memcpy(&four, segment + p * r.pixel_step + d * 4, 4);
          Dot::add(acc[p][0], acc[p][1], four, weights);
        }
      }
    }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    store32(acc_out + p * 16, acc[p][0]);
    store32(acc_out + p * 16 + 8, acc[p][1]);
  }
}

template <typename Dot, int P = Dot::kPixels>
void multiply_some(int64_t pixels, const Runs& r, const uint8_t* in, const int8_t* w, const int32_t* acc_init,
                   int32_t* acc_out) {
  if constexpr (P > 1) {
    if (pixels < P) return multiply_some<Dot, P - 1>(pixels, r, in, w, acc_init, acc_out);
  }
  multiply<Dot, P>(r, in, w, acc_init, acc_out);
}

template <typename Dot>
void conv_rows(const ConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  const Runs r{g.stride_w * a.in.c_pitch,   g.kernel_h, g.dilation_h * a.in.row_stride, l.segments_per_row,
               g.dilation_w * a.in.c_pitch, l.dwords};
  const int64_t tiles = (e.out.w + Dot::kPixels - 1) / Dot::kPixels, size = e.out.w / tiles, longer = e.out.w % tiles;
  const Finish finish(e);
  alignas(32) int32_t acc[Dot::kPixels * 16];
  for (int64_t b = blocks.begin; b < blocks.end; ++b) {
    const uint8_t* channel = a.in.data + block_channel_offset(g, b);
    const int8_t* w = a.weights + b * l.segments * l.dwords * 64;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t n = row / e.out.h, y = row % e.out.h;
      const uint8_t* in =
          channel + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride - g.pad_left * a.in.c_pitch;
      for (int64_t t = 0, x = 0; t < tiles; ++t) {
        const int64_t pixels = size + (t < longer);
        multiply_some<Dot>(pixels, r, in + x * r.pixel_step, w, a.acc_init + b * 16, acc);
        finish.row(acc, pixels, b * 16, n, y, x);
        x += pixels;
      }
    }
  }
}

}  // namespace
}  // namespace octet::kernels

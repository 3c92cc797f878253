// Exact INT8 convolution on 16-bit words, for processors without byte dot products: vpmaddubsw would saturate its sums,
// vpmaddwd of words does not. Widening inside the product would cost as much as the product, so both operands are
// widened beforehand into this thread's scratch: some rows of the image, once for all output channels, and the weights
// of one block of 16 output channels, once for all pixels of these rows. What is left of the inner loop is two
// vpmaddwd and two vpaddd for a *pair* of input channels x 16 output channels of a pixel; the input is broadcast by
// loads. These four run on three ports: 24 products a cycle, which layers with many input channels reach.
#pragma once
#include "engine/kernels/avx2/conv_tiles.h"
#include "engine/kernels/avx2/words/word_plan.h"

namespace octet::kernels {
namespace {

struct WordDot {
  static OCTET_INLINE Y add(Y sum, Y input, Y weights, Y) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(input, weights));
  }
};

constexpr int64_t kShortSegment = 16, kMostShortSteps = 128;

// `scratch`: word_plan(a).scratch_bytes, 64-byte aligned.
inline void conv_words(const ConvArgs& a, Range rows, Range blocks, std::byte* scratch,
                       const RaisedWeights& raised = {}) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const WordPlan p = word_plan(a);
  const Finish finish(e);
  const bool relu = finish.straight() && relu_shortcut(a, g.kernel_h * g.kernel_w * g.in_channels / g.groups);
  TileFunction* const* const whole = pixel_tiles<WordDot, 2>(finish, relu);
  TileFunction* const* const half = pixel_tiles<WordDot, 1>(finish, relu);
  auto* panel = reinterpret_cast<int16_t*>(scratch);
  auto* places = reinterpret_cast<PixelPlace*>(scratch + p.panel_bytes);
  auto* words = reinterpret_cast<uint16_t*>(scratch + p.panel_bytes + p.place_bytes);
  PixelTile tile{.kernel_h = g.kernel_h,
                 .segments_per_row = p.layout.segments_per_row,
                 .steps = p.pairs,
                 .tap_row_step = p.tap_row_step * p.row_words * 2,
                 .tap_step = p.tap_step * 2,
                 .panel_skip = 0,
                 .panel = reinterpret_cast<const int8_t*>(panel),
                 .finish = &finish};
  int32_t offsets[kMostShortSteps];
  if (p.layout.segments > 1 && p.pairs <= kShortSegment && p.layout.segments * p.pairs <= kMostShortSteps) {
    int32_t* offset = offsets;
    for (int64_t y = 0; y < g.kernel_h; ++y)
      for (int64_t s = 0; s < p.layout.segments_per_row; ++s)
        for (int64_t i = 0; i < p.pairs; ++i)
          *offset++ = static_cast<int32_t>(y * tile.tap_row_step + s * tile.tap_step + i * 4);
    tile.offsets = offsets, tile.all_steps = offset - offsets;
  }
  alignas(64) int32_t start[16];
  tile.acc_init = start;
  int64_t placed = 0;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / e.out.h, y0 = row % e.out.h;
    const int64_t height = smaller(smaller(p.chunk_rows, e.out.h - y0), rows.end - row);
    const uint8_t* image = a.in.data + n * a.in.image_stride - g.pad_left * a.in.c_pitch;
    for (int64_t i = 0; i < (height - 1) * p.row_step + p.kernel_rows; ++i) {
      const int64_t y = g.kernel_h == 1 ? (y0 + i) * g.stride_h : y0 * g.stride_h + i;
      widen_row(a, p, image + (y - g.pad_top) * a.in.row_stride, words + i * p.row_words);
    }
    for (; placed < height; ++placed)
      for (int64_t x = 0; x < e.out.w; ++x)
        places[placed * e.out.w + x] = {
            static_cast<int32_t>((placed * p.row_step * p.row_words + x * p.pixel_step) * 2),
            static_cast<int32_t>(placed * e.out.row_stride + x * e.out.c_pitch),
            static_cast<int32_t>(placed * e.residual.row_stride + x * e.residual.c_pitch)};
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      widen_weights(a, p, raised, b, panel);
      tile.in = reinterpret_cast<const uint8_t*>(words + block_channel_offset(g, b));
      start_sums(a, b, relu, start);
      tile.aim(e, n, y0, b * 16);
      for_each_tile(tile, g.out_channels - b * 16 <= 8 ? half : whole, places, height * e.out.w, row * e.out.w);
    }
    row += height;
  }
}

}  // namespace
}  // namespace octet::kernels

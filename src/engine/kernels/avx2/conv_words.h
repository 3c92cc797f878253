// Exact INT8 convolution on 16-bit words, for processors without byte dot products: vpmaddubsw would saturate its sums,
// vpmaddwd of words does not. Widening inside the product would cost as much as the product, so both operands are
// widened beforehand into this thread's scratch: some rows of the image, once for all output channels, and the weights
// of one block of 16 output channels, once for all pixels of these rows. What is left of the inner loop is two
// vpmaddwd and two vpaddd for a *pair* of input channels x 16 output channels of a pixel; the input is broadcast by
// loads. These four run on three ports: 24 products a cycle, which layers with many input channels reach.
#pragma once
#include "engine/kernels/avx2/finish.h"
#include "engine/kernels/avx2/word_plan.h"

namespace octet::kernels {
namespace {

constexpr int kTilePixels = 6;  // 12 sums, two vectors of weights, one of input, one product: all 16 registers

// Pixels of any rows x one block of output channels.
struct WordTile {
  int64_t kernel_h, segments_per_row, pairs, tap_row_step, tap_step;
  const uint16_t* words;  // of the first pixel and tap, at the block's first channel
  const PixelPlace* places;
  const int16_t* panel;
  const int32_t* acc_init;
  const Finish* finish;
  int64_t channel;
  uint8_t* out;             // of the first pixel and channel
  const uint8_t* residual;  // alike
  int64_t first_pixel;      // of the tile, counted over n * h * w: float tensors are dense
};

// P pixels x V vectors of 8 output channels. kStraight: the sums are finished in registers.
template <int P, int V, Sum S, bool kStraight>
void multiply_words(const WordTile& t) {
  Y sum[P][V];
  const uint16_t* x[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    x[p] = t.words + t.places[p].in;
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[p][v] = load32(t.acc_init + 8 * v);
  }
  const int16_t* w = t.panel;
  for (int64_t y = 0; y < t.kernel_h; ++y)
    for (int64_t s = 0; s < t.segments_per_row; ++s) {
      int64_t at = y * t.tap_row_step + s * t.tap_step;
      for (const int16_t* end = w + t.pairs * 32; w != end; w += 32, at += 2) {
        Y weights[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) weights[v] = load32(w + 16 * v);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
          int32_t pair;
          std::memcpy(&pair, x[p] + at, 4);
          const Y both = _mm256_set1_epi32(pair);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[p][v] = _mm256_add_epi32(sum[p][v], _mm256_madd_epi16(both, weights[v]));
        }
      }
    }
  if constexpr (kStraight) {
    const auto value = [&](int p, int v) __attribute__((always_inline)) {
      if (v >= V) return _mm256_setzero_si256();
      return t.finish->value<S, true>(sum[p][v < V ? v : 0], t.channel + v * 8,
                                      S == Sum::kNone ? nullptr : t.residual + t.places[p].residual + v * 8);
    };
    constexpr int kPairs = (P + 1) / 2;
    Y codes[kPairs];
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const int p = 2 * i, q = p + 1 < P ? p + 1 : p;
      codes[i] = t.finish->pack(value(p, 0), value(p, 1), value(q, 0), value(q, 1));
    }
    if (t.finish->has_table()) t.finish->look_up(codes, kPairs);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      uint8_t* out = t.out + t.places[p].out;
      store16(out, p % 2 ? _mm256_extracti128_si256(codes[p / 2], 1) : _mm256_castsi256_si128(codes[p / 2]));
    }
  } else {
    alignas(32) int32_t acc[P * 16] = {};
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) store32(acc + p * 16 + v * 8, sum[p][v]);
    for (int p = 0; p < P; ++p)
      t.finish->pixel(acc + p * 16, t.channel, t.out + t.places[p].out, t.residual + t.places[p].residual,
                      t.first_pixel + p);
  }
}

using TileFunction = void(const WordTile& t);

template <int V, Sum S, bool kStraight>
constexpr TileFunction* kWordTiles[kTilePixels + 1] = {nullptr,
                                                       multiply_words<1, V, S, kStraight>,
                                                       multiply_words<2, V, S, kStraight>,
                                                       multiply_words<3, V, S, kStraight>,
                                                       multiply_words<4, V, S, kStraight>,
                                                       multiply_words<5, V, S, kStraight>,
                                                       multiply_words<6, V, S, kStraight>};

// By number of pixels.
template <int V>
TileFunction* const* word_tiles(const Finish& finish) {
  if (!finish.straight()) return kWordTiles<V, Sum::kNone, false>;
  switch (finish.sum()) {
    case Sum::kOnce:
      return kWordTiles<V, Sum::kOnce, true>;
    case Sum::kTwice:
      return kWordTiles<V, Sum::kTwice, true>;
    default:
      return kWordTiles<V, Sum::kNone, true>;
  }
}

// `scratch`: word_plan(a).scratch_bytes, 64-byte aligned.
inline void conv_words(const ConvArgs& a, Range rows, Range blocks, std::byte* scratch) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const WordPlan p = word_plan(a);
  const Finish finish(e);
  TileFunction* const* const whole = word_tiles<2>(finish);
  TileFunction* const* const half = word_tiles<1>(finish);
  auto* panel = reinterpret_cast<int16_t*>(scratch);
  auto* places = reinterpret_cast<PixelPlace*>(scratch + p.panel_bytes);
  auto* words = reinterpret_cast<uint16_t*>(scratch + p.panel_bytes + p.place_bytes);
  WordTile tile{.kernel_h = g.kernel_h,
                .segments_per_row = p.layout.segments_per_row,
                .pairs = p.pairs,
                .tap_row_step = p.tap_row_step * p.row_words,
                .tap_step = p.tap_step,
                .panel = panel,
                .finish = &finish};
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
        places[placed * e.out.w + x] = {static_cast<int32_t>(placed * p.row_step * p.row_words + x * p.pixel_step),
                                        static_cast<int32_t>(placed * e.out.row_stride + x * e.out.c_pitch),
                                        static_cast<int32_t>(placed * e.residual.row_stride + x * e.residual.c_pitch)};
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      widen_weights(a, p, b, panel);
      tile.words = words + block_channel_offset(g, a.in.c_pitch, b);
      tile.acc_init = a.acc_init + b * 16;
      tile.channel = b * 16;
      tile.out = e.out.data ? e.out.data + n * e.out.image_stride + y0 * e.out.row_stride + b * 16 : nullptr;
      tile.residual = e.residual.data
                          ? e.residual.data + n * e.residual.image_stride + y0 * e.residual.row_stride + b * 16
                          : nullptr;
      TileFunction* const* const functions = g.out_channels - b * 16 <= 8 ? half : whole;
      // Tiles of six and a rest, or where the rest would be one pixel, one tile less.
      for (int64_t at = 0, pixels = height * e.out.w; at < pixels;) {
        const int64_t left = pixels - at, size = left == kTilePixels + 1 ? 4 : smaller(left, kTilePixels);
        tile.places = places + at;
        tile.first_pixel = (row * e.out.w) + at;
        functions[size](tile);
        at += size;
      }
    }
    row += height;
  }
}

}  // namespace
}  // namespace octet::kernels

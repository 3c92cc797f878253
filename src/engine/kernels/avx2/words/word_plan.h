// How conv_words.h cuts a convolution, and the widening of both operands into the scratch of a thread:
//   [panel: pair of input words][16 output channels][2 words]   the weights of one block of output channels
//   [place of each output pixel]                                of the rows that are worked on at once
//   [rows of the image in words]
#pragma once
#include "engine/kernels/avx2/conv_tiles.h"
#include "engine/kernels/int8_conv.h"

namespace octet::kernels {
namespace {

// Pixels that are worked on at once: as many as stay in the L1 cache with their input and output, but enough to pay for
// widening the weights again (2 % of the products at this number), and no more input than stays in the L2 cache.
constexpr int64_t kChunkBytes = 24 * 1024, kChunkPixels = 300, kLargestChunk = 256 * 1024;
constexpr int64_t kMaxImageRun = 256;  // words of a run of 4-byte pixels

// What a chunk of output rows reads.
struct ChunkInput {
  int64_t row_bytes = 0;          // of an input row in the scratch
  int64_t row_step = 1;           // input rows from one output row to the next
  int64_t kernel_rows = 1;        // input rows that an output row needs, first to last
  int64_t pixels = kChunkPixels;  // outputs that pay for the preparation
};

// Output rows that are worked on at once: all chunks of an image but the last have as many.
inline int64_t rows_of_chunk(const QTensor& out, const ChunkInput& in) {
  const int64_t near = kChunkBytes / (in.row_step * in.row_bytes + out.w * padded_channels(out.c));
  const int64_t enough = (in.pixels + out.w - 1) / out.w;
  const int64_t fit = (kLargestChunk / in.row_bytes - in.kernel_rows) / in.row_step + 1;
  const int64_t wanted = smaller(near > enough ? near : enough, fit);
  const int64_t chunks = wanted < 1 ? out.h : (out.h + wanted - 1) / wanted;
  return (out.h + chunks - 1) / chunks;
}

// How a convolution is cut into words.
struct WordPlan {
  ConvLayout layout;
  bool compact = false;        // 4-byte pixels: their 1 to 3 real channels only
  int64_t pixel_words = 0;     // of one pixel in the scratch
  int64_t pixels_per_row = 0;  // of the image that are widened
  int64_t source_step = 1;     // pixels of the image from one widened pixel to the next
  int64_t row_words = 0;       // of a widened row
  int64_t row_step = 0;        // widened rows from one output row to the next
  int64_t kernel_rows = 0;     // widened rows that an output row needs, first to last
  int64_t tap_row_step = 0;    // widened rows from one kernel row to the next
  int64_t pixel_step = 0;      // words from one output pixel to the next
  int64_t tap_step = 0;        // words from one segment of a row to the next
  int64_t pairs = 0;           // per segment
  int64_t chunk_rows = 0;      // output rows whose input is widened at once
  int64_t panel_bytes = 0, place_bytes = 0;
  int64_t scratch_bytes = 0;
};

inline WordPlan word_plan(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  WordPlan p;
  p.layout = conv_layout(g, a.in.c_pitch);
  p.compact = a.in.c_pitch == 4 && g.groups == 1 && g.in_channels < 4 && p.layout.segments_per_row == 1 &&
              g.kernel_w * g.in_channels <= kMaxImageRun;
  p.pixel_words = p.compact ? g.in_channels : pixel_bytes(g);
  // Only the pixels and rows that are needed where a 1 x 1 kernel strides over the rest.
  const bool sparse_w = g.kernel_w == 1 && !p.compact, sparse_h = g.kernel_h == 1;
  p.source_step = sparse_w ? g.stride_w : 1;
  p.pixels_per_row = sparse_w ? out.w : (out.w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1;
  p.row_words = (p.pixels_per_row * p.pixel_words + 15) / 16 * 16;
  p.row_step = sparse_h ? 1 : g.stride_h;
  p.tap_row_step = g.dilation_h;
  p.kernel_rows = (g.kernel_h - 1) * g.dilation_h + 1;
  p.pixel_step = (sparse_w ? 1 : g.stride_w) * p.pixel_words;
  p.tap_step = g.dilation_w * p.pixel_words;
  if (p.compact) {
    p.pairs = (g.kernel_w * g.in_channels + 1) / 2;
  } else if (g.groups == 1 && (p.layout.segments_per_row > 1 || g.kernel_w == 1)) {
    p.pairs = (g.in_channels + 3) / 4 * 2;  // the padding of a pixel has weight zero
  } else {
    p.pairs = p.layout.dwords * 2;
  }
  const int64_t row_bytes = p.row_words * 2;
  p.chunk_rows = rows_of_chunk(out, {row_bytes, p.row_step, p.kernel_rows, (p.compact ? 2 : 1) * kChunkPixels});
  p.panel_bytes = (p.layout.segments * p.pairs * 64 + 63) / 64 * 64;
  p.place_bytes = (p.chunk_rows * out.w * static_cast<int64_t>(sizeof(PixelPlace)) + 63) / 64 * 64;
  // A vector of words more at the end: widening writes whole vectors, a last pair may read one word too many.
  p.scratch_bytes = p.panel_bytes + p.place_bytes + ((p.chunk_rows - 1) * p.row_step + p.kernel_rows) * row_bytes + 64;
  return p;
}

// Row `in` of the image -> words.
inline void widen_row(const ConvArgs& a, const WordPlan& p, const uint8_t* in, uint16_t* words) {
  const auto widen = [](const uint8_t* from, uint16_t* to) __attribute__((always_inline)) {
    store32(to, _mm256_cvtepu8_epi16(load16(from)));
  };
  if (p.compact) {  // 4 pixels at a time
    const int64_t c = p.pixel_words;
    alignas(16) int8_t order[16];
    for (int i = 0; i < 16; ++i) order[i] = static_cast<int8_t>(i < 4 * c ? i / c * 4 + i % c : -1);
    const __m128i shuffle = load16(order);
    for (int64_t x = 0; x < p.pixels_per_row; x += 4)
      store32(words + x * c, _mm256_cvtepu8_epi16(_mm_shuffle_epi8(load16(in + x * 4), shuffle)));
  } else if (p.source_step == 1 && p.pixel_words == a.in.c_pitch) {
    for (int64_t i = 0; i < p.pixels_per_row * p.pixel_words; i += 16) widen(in + i, words + i);
  } else {
    for (int64_t x = 0; x < p.pixels_per_row; ++x, in += p.source_step * a.in.c_pitch, words += p.pixel_words)
      for (int64_t i = 0; i < p.pixel_words; i += 16) widen(in + i, words + i);
  }
}

// Weights of 1x1 layers as bytes/pointwise.h prepares them, plus 128: what is read instead of a.weights where it is
// given.
struct RaisedWeights {
  const int8_t* panels = nullptr;
  int64_t dwords = 0;  // of a block
};

// The packed weights of a block (16 output channels x 4 bytes) -> pairs of words.
inline void widen_weights(const ConvArgs& a, const WordPlan& p, const RaisedWeights& raised, int64_t block,
                          int16_t* panel) {
  const ConvLayout& l = p.layout;
  const int8_t* w = a.weights + block * l.segments * l.dwords * 64;
  if (p.compact) {
    // Word i of a run is byte i % c of dword i / c: shifted to the top of its dword, then down with its sign.
    const int64_t c = p.pixel_words, run = a.geometry.kernel_w * c;
    const auto top = [&](int64_t i, int64_t half) __attribute__((always_inline)) {
      if (i >= run) return _mm256_setzero_si256();
      return _mm256_sll_epi32(load32(w + i / c * 64 + half), _mm_cvtsi64_si128(24 - 8 * (i % c)));
    };
    for (int64_t s = 0; s < l.segments; ++s, w += l.dwords * 64)
      for (int64_t i = 0; i < p.pairs; ++i)
        for (int64_t half = 0; half < 64; half += 32, panel += 16)
          store32(panel, _mm256_blend_epi16(_mm256_srai_epi32(top(2 * i, half), 24),
                                            _mm256_srai_epi32(top(2 * i + 1, half), 8), 0xaa));
    return;
  }
  // Bytes 0 and 1 (2 and 3) of every dword into the upper halves of its words.
  const Y first = _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13));
  const Y second =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15));
  if (raised.panels) w = raised.panels + block * raised.dwords * 64;
  const int64_t stored = raised.panels ? raised.dwords : p.pairs / 2;  // padding behind them
  const Y raise = _mm256_set1_epi8(raised.panels ? -128 : 0);
  for (int64_t s = 0; s < l.segments; ++s, w += l.dwords * 64)
    for (int64_t d = 0; d < p.pairs / 2; ++d, panel += 64) {
      Y low = _mm256_setzero_si256(), high = low;
      if (d < stored) {
        low = _mm256_xor_si256(load32(w + d * 64), raise);
        high = _mm256_xor_si256(load32(w + d * 64 + 32), raise);
      }
      store32(panel, _mm256_srai_epi16(_mm256_shuffle_epi8(low, first), 8));
      store32(panel + 16, _mm256_srai_epi16(_mm256_shuffle_epi8(high, first), 8));
      store32(panel + 32, _mm256_srai_epi16(_mm256_shuffle_epi8(low, second), 8));
      store32(panel + 48, _mm256_srai_epi16(_mm256_shuffle_epi8(high, second), 8));
    }
}

}  // namespace
}  // namespace octet::kernels

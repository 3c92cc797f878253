// A band of output rows cut into tiles of up to 16 pixels that are equally spaced in the input, with the place of every
// result.
//
// Either each row is cut on its own, or the band is one line: all positions of a stride-1 convolution from its first
// pixel to its last, those between two rows computed for nothing. A last tile that would pass the end starts earlier
// and computes some pixels again, of which nothing is stored: all reads stay inside the pixels of the layer.
#pragma once
#include "engine/kernels/amx/finish_block.h"
#include "engine/kernels/amx/tile_unit.h"

namespace octet::kernels {
namespace {

// What tiles are loaded from. Row and image counts are those of the output.
struct TileSource {
  const uint8_t* first = nullptr;                        // what the first pixel of the output reads first
  int64_t pixel_step = 0, row_step = 0, image_step = 0;  // bytes from one output pixel, row, image to the next
};

inline TileSource tile_source(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  return {a.in.data - g.pad_top * a.in.row_stride - g.pad_left * a.in.c_pitch, g.stride_w * a.in.c_pitch,
          g.stride_h * a.in.row_stride, a.in.image_stride};
}

// Pixels of the input from one output row to the next where those of all rows are equally spaced, else 0.
inline int64_t line_pitch(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const int64_t pitch = a.in.row_stride / a.in.c_pitch;
  return g.stride_h == 1 && g.stride_w == 1 && a.in.row_stride == pitch * a.in.c_pitch ? pitch : 0;
}

// Bytes from one pixel and row to the next.
struct Places {
  int64_t pixel = 0, row = 0, image = 0;
};

struct BandShape {
  int64_t width = 0;
  int64_t pitch = 0;      // positions from one row to the next if the band is one line, else 0
  int64_t tile_rows = 0;  // pixels of a tile
  int64_t tiles_per_line = 0;

  int64_t line_positions(int64_t rows) const { return pitch > 0 ? (rows - 1) * pitch + width : width; }
};

inline int64_t tiles_of(int64_t positions) {
  return (positions + kTileRows - 1) / kTileRows;
}

// The cut of `rows` rows with the fewest tiles; `pitch` is 0 where rows cannot form one line. Tiles as equal as
// possible.
inline BandShape band_shape(int64_t rows, int64_t width, int64_t pitch) {
  BandShape s;
  s.width = width;
  const int64_t line = (rows - 1) * pitch + width;
  if (pitch >= width && tiles_of(line) < rows * tiles_of(width)) s.pitch = pitch;
  const int64_t positions = s.line_positions(rows);
  s.tiles_per_line = tiles_of(positions);
  s.tile_rows = (positions + s.tiles_per_line - 1) / s.tiles_per_line;
  return s;
}

constexpr int64_t kMaxBandPixels = 2048;
constexpr int64_t kMaxBandTiles = kMaxBandPixels / 4;

// Only what build() wrote may be read.
struct Band {
  int64_t tiles = 0, pixels = 0;
  const uint8_t* tile[kMaxBandTiles + 4];
  int32_t first_pixel[kMaxBandTiles + 5];  // of a tile; one more entry ends the last tile
  // By pixel; vectors are written whole, so there is room for one more.
  alignas(64) int32_t sums[kMaxBandPixels + 16];
  alignas(64) int32_t out[kMaxBandPixels + 16];
  alignas(64) int32_t residual[kMaxBandPixels + 16];

  // Rows from row 0 of `in` on; places are relative to that row's first pixel. Blocks have `mt` tiles of pixels and
  // `nt` of channels.
  void build(const BandShape& s, int64_t rows, const uint8_t* in, const TileSource& source, const Places& out_places,
             const Places& residual_places, int mt, int nt) {
    tiles = pixels = 0;
    const int64_t lines = s.pitch > 0 ? 1 : rows;
    for (int64_t line = 0; line < lines; ++line)
      add_line(s, in + line * source.row_step, s.line_positions(rows), source.pixel_step, line * out_places.row,
               out_places, line * residual_places.row, residual_places, mt, nt);
    first_pixel[tiles] = static_cast<int32_t>(pixels);
  }

 private:
  static OCTET_INLINE Z lanes() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
  static OCTET_INLINE Z all(int64_t v) { return _mm512_set1_epi32(static_cast<int32_t>(v)); }

  void add_line(const BandShape& s, const uint8_t* in, int64_t positions, int64_t pixel_step, int64_t out_at,
                const Places& out_places, int64_t residual_at, const Places& residual_places, int mt, int nt) {
    const int64_t pitch = s.pitch > 0 ? s.pitch : positions;
    const Z out_lanes = _mm512_mullo_epi32(lanes(), all(out_places.pixel));
    const Z residual_lanes = _mm512_mullo_epi32(lanes(), all(residual_places.pixel));
    const Z sum_lanes = _mm512_slli_epi32(lanes(), 6);
    const Z out_wrap = all(out_places.row - pitch * out_places.pixel);
    const Z residual_wrap = all(residual_places.row - pitch * residual_places.pixel);
    const Z width = all(s.width), row_end = all(pitch);
    for (int64_t first = 0; first < positions; first += s.tile_rows) {
      const int64_t start = smaller(first, positions - s.tile_rows);
      const int64_t row = start / pitch, column = start - row * pitch;
      Z x = _mm512_add_epi32(lanes(), all(column));
      Z o = _mm512_add_epi32(out_lanes, all(out_at + row * out_places.row + column * out_places.pixel));
      Z r = _mm512_add_epi32(residual_lanes,
                             all(residual_at + row * residual_places.row + column * residual_places.pixel));
      for (;;) {  // lanes beyond the end of a row go to the next one
        const __mmask16 beyond = _mm512_cmp_epi32_mask(x, row_end, _MM_CMPINT_NLT);
        if (beyond == 0 || s.pitch == 0) break;
        x = _mm512_mask_sub_epi32(x, beyond, x, row_end);
        o = _mm512_mask_add_epi32(o, beyond, o, out_wrap);
        r = _mm512_mask_add_epi32(r, beyond, r, residual_wrap);
      }
      auto wanted = _mm512_cmp_epi32_mask(x, width, _MM_CMPINT_LT);
      wanted &= static_cast<__mmask16>((1u << s.tile_rows) - (1u << (first - start)));
      const Z sum_at = _mm512_add_epi32(sum_lanes, all(tiles % mt * nt * kTileBytes));
      _mm512_storeu_si512(sums + pixels, _mm512_maskz_compress_epi32(wanted, sum_at));
      _mm512_storeu_si512(out + pixels, _mm512_maskz_compress_epi32(wanted, o));
      _mm512_storeu_si512(residual + pixels, _mm512_maskz_compress_epi32(wanted, r));
      tile[tiles] = in + start * pixel_step;
      first_pixel[tiles++] = static_cast<int32_t>(pixels);
      pixels += __builtin_popcount(wanted);
    }
  }
};

}  // namespace
}  // namespace octet::kernels

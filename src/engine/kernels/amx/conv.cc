// INT8 convolution on AMX tiles. A tile row of activations is one output pixel: K bytes straight from the NHWC tensor,
// with the pixel pitch as row stride; the packed weights are a sequence of tile rows already. Two tiles of up to 16
// pixels times two blocks of 16 output channels accumulate at a time; their sums go through a small buffer in the L1
// cache to the epilogue of the AVX-512 kernels. All reads stay inside the pixels of the layer: a last tile that would
// pass the end starts earlier and computes some pixels again, of which nothing is stored.
#include "engine/kernels/avx512_vnni/finish.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/vector.h"
#include "engine/kernels/isa_kernels.h"

namespace octet::kernels {
namespace {

constexpr int64_t kTileRows = 16;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0-3: sums; 4, 5: activations, `pixels` rows of `dwords` dwords; 6, 7: weights, `dwords` rows.
void configure(int64_t pixels, int64_t dwords) {
  TileConfig c;
  for (int t = 0; t < 8; ++t) {
    c.bytes_per_row[t] = static_cast<uint16_t>(t == 4 || t == 5 ? dwords * 4 : 64);
    c.rows[t] = static_cast<uint8_t>(t < 6 ? pixels : dwords);
  }
  // The intrinsic does not claim to read all of c: without the memory clobber its stores could be dropped.
  asm volatile("ldtilecfg %0" : : "m"(c) : "memory");
}

// What is the same for all tiles of a call.
struct Plan {
  int64_t pixel_step = 0, kernel_rows = 0, row_step = 0, segments_per_row = 0, tap_step = 0;
  int64_t chunks = 0, chunk_bytes = 0;  // of a segment; K bytes of a tile
  int64_t block_bytes = 0;              // of packed weights
  int64_t tile_rows = 0;
};

// M tiles of pixels x N blocks of channels; sums to `acc` as [tile][row][N * 16].
template <int M, int N>
void multiply(const Plan& p, const uint8_t* in0, const uint8_t* in1, const int8_t* w, const int32_t* acc_init,
              int32_t* acc) {
  // All rows of a tile start with the same 16 values: a stride of 0.
  _tile_loadd(0, acc_init, 0);
  if constexpr (N == 2) _tile_loadd(1, acc_init + 16, 0);
  if constexpr (M == 2) _tile_loadd(2, acc_init, 0);
  if constexpr (M == 2 && N == 2) _tile_loadd(3, acc_init + 16, 0);
  const int64_t weight_step = p.chunk_bytes * 16;
  for (int64_t y = 0; y < p.kernel_rows; ++y)
    for (int64_t s = 0; s < p.segments_per_row; ++s) {
      int64_t at = y * p.row_step + s * p.tap_step;
      for (int64_t c = 0; c < p.chunks; ++c, at += p.chunk_bytes, w += weight_step) {
        _tile_loadd(6, w, 64);
        _tile_loadd(4, in0 + at, p.pixel_step);
        _tile_dpbusd(0, 4, 6);
        if constexpr (N == 2) {
          _tile_loadd(7, w + p.block_bytes, 64);
          _tile_dpbusd(1, 4, 7);
        }
        if constexpr (M == 2) {
          _tile_loadd(5, in1 + at, p.pixel_step);
          _tile_dpbusd(2, 5, 6);
          if constexpr (N == 2) _tile_dpbusd(3, 5, 7);
        }
      }
    }
  _tile_stored(0, acc, N * 64);
  if constexpr (N == 2) _tile_stored(1, acc + 16, N * 64);
  if constexpr (M == 2) _tile_stored(2, acc + p.tile_rows * N * 16, N * 64);
  if constexpr (M == 2 && N == 2) _tile_stored(3, acc + p.tile_rows * N * 16 + 16, N * 64);
}

// A run of output pixels that are equally spaced in the input: one output row, or all rows of an image of a stride-1
// convolution, with the positions between the rows computed for nothing.
struct Line {
  const uint8_t* in = nullptr;
  int64_t positions = 0, pitch = 0;  // pitch: positions from one row to the next
  int64_t n = 0, y = 0;              // of position 0
};

// Positions [from, rows) of a tile that starts at `start`.
template <int N>
void finish_positions(const Line& line, int64_t start, int64_t from, int64_t rows, const int32_t* acc, int64_t channel,
                      const Epilogue& e, const Constants& c) {
  while (from < rows) {
    const int64_t row = (start + from) / line.pitch, x = (start + from) % line.pitch;
    const int64_t pixels = smaller(rows - from, e.out.w - x);
    if (pixels > 0) finish<N>({acc + from * N * 16, pixels, channel, line.n, line.y + row, x}, e, c);
    from += smaller(rows - from, line.pitch - x);
  }
}

template <int N>
void run_line(const Plan& p, const Line& line, int64_t block, const ConvArgs& a, const Constants& c, int32_t* acc) {
  const int8_t* w = a.weights + block * p.block_bytes;
  const int32_t* init = a.acc_init + block * 16;
  const int64_t rows = p.tile_rows, last = line.positions - rows;
  for (int64_t first = 0; first < line.positions; first += 2 * rows) {
    const bool two = first + rows < line.positions;
    const int64_t start0 = smaller(first, last), start1 = smaller(first + rows, last);
    const uint8_t *in0 = line.in + start0 * p.pixel_step, *in1 = line.in + start1 * p.pixel_step;
    if (two) {
      multiply<2, N>(p, in0, in1, w, init, acc);
    } else {
      multiply<1, N>(p, in0, in1, w, init, acc);
    }
    finish_positions<N>(line, start0, first - start0, rows, acc, block * 16, a.epilogue, c);
    if (two)
      finish_positions<N>(line, start1, first + rows - start1, rows, acc + rows * N * 16, block * 16, a.epilogue, c);
  }
}

int64_t tiles_of(int64_t positions) {
  return (positions + kTileRows - 1) / kTileRows;
}

// Tile rows for a line: the fewest tiles, as equal as possible.
int64_t rows_of(int64_t positions) {
  const int64_t tiles = tiles_of(positions);
  return (positions + tiles - 1) / tiles;
}

// All segments are cut into equal chunks of at most 16 dwords, so that one tile configuration serves the layer.
int64_t chunk_dwords(int64_t dwords) {
  for (int64_t d = kTileRows; d > 1; --d)
    if (dwords % d == 0) return d;
  return 1;
}

void conv_amx(const ConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  Plan p;
  p.pixel_step = g.stride_w * a.in.c_pitch;
  p.kernel_rows = g.kernel_h;
  p.row_step = g.dilation_h * a.in.row_stride;
  p.segments_per_row = l.segments_per_row;
  p.tap_step = g.dilation_w * a.in.c_pitch;
  p.chunk_bytes = 4 * chunk_dwords(l.dwords);
  p.chunks = l.dwords * 4 / p.chunk_bytes;
  p.block_bytes = l.segments * l.dwords * 64;

  const int64_t images = (rows.end - 1) / e.out.h - rows.begin / e.out.h + 1;
  const int64_t pitch = a.in.row_stride / a.in.c_pitch;
  const int64_t image_rows = images == 1 ? rows.end - rows.begin : e.out.h;
  const int64_t whole = (image_rows - 1) * pitch + e.out.w;
  const bool linear = g.stride_h == 1 && g.stride_w == 1 && pitch >= e.out.w &&
                      a.in.row_stride == pitch * a.in.c_pitch && tiles_of(whole) < image_rows * tiles_of(e.out.w);
  // Too little of a tile would be used: matrix-vector products, a few channels of a group, 4-byte pixels.
  if (g.groups > 1 || p.chunk_bytes < 16 || (e.out.data && e.out.c_pitch < 16) ||
      (linear ? whole : e.out.w) < kTileRows / 4)
    return conv_avx512_vnni(a, rows, blocks);

  const Constants constants = make_constants(e);
  alignas(64) int32_t acc[2 * kTileRows * 32];
  int64_t configured = 0;
  for (int64_t b = blocks.begin; b < blocks.end; b += 2)
    for (int64_t r = rows.begin; r < rows.end;) {
      const int64_t n = r / e.out.h, y = r % e.out.h;
      const int64_t take = linear ? smaller(rows.end - r, e.out.h - y) : 1;
      Line line;
      line.in = a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride -
                g.pad_left * a.in.c_pitch;
      line.pitch = linear ? pitch : e.out.w;
      line.positions = (take - 1) * pitch + e.out.w;
      line.n = n;
      line.y = y;
      p.tile_rows = rows_of(line.positions);
      if (p.tile_rows != configured) configure(configured = p.tile_rows, p.chunk_bytes / 4);
      if (b + 1 < blocks.end) {
        run_line<2>(p, line, b, a, constants, acc);
      } else {
        run_line<1>(p, line, b, a, constants, acc);
      }
      r += take;
    }
  _tile_release();
}

}  // namespace

void add_amx_kernels(KernelTable& table) {
  set_direct_conv(table, conv_amx, Isa::kAmxInt8,
                  [](const ConvArgs& a, int threads) { return cost_at_rate(a, threads, 250); });
}

}  // namespace octet::kernels

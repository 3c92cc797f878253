// INT8 convolution with the 256-bit dot products of AVX-VNNI (client processors without AVX-512): the tiles of
// conv_tiles.h over the image itself and the packed weights.
#include "engine/kernels/avx2/conv_tiles.h"
#include "engine/kernels/isa_kernels.h"
#include "engine/kernels/winograd/tactic.h"

namespace octet::kernels {
namespace {

constexpr int64_t kChunkPixels = 252;  // worked on at once for each block of weights: a multiple of the tile

struct VnniDot {
  static OCTET_INLINE Y add(Y sum, Y input, Y weights, Y) { return _mm256_dpbusd_avx_epi32(sum, input, weights); }
};

void conv_avx_vnni(const ConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  // The padding of a pixel has weight zero: where a segment is one pixel it is left out.
  const bool one_pixel = g.groups == 1 && (l.segments_per_row > 1 || g.kernel_w == 1);
  const int64_t steps = one_pixel ? (g.in_channels + 3) / 4 : l.dwords;
  const Finish finish(e);
  TileFunction* const* const whole = pixel_tiles<VnniDot, 2>(finish);
  TileFunction* const* const half = pixel_tiles<VnniDot, 1>(finish);
  PixelTile tile{.kernel_h = g.kernel_h,
                 .segments_per_row = l.segments_per_row,
                 .steps = steps,
                 .tap_row_step = g.dilation_h * a.in.row_stride,
                 .tap_step = g.dilation_w * a.in.c_pitch,
                 .panel_skip = (l.dwords - steps) * 64,
                 .finish = &finish};
  PixelPlace places[kChunkPixels];
  const int64_t end = rows.end * e.out.w;
  for (int64_t first = rows.begin * e.out.w; first < end; first += kChunkPixels) {
    const int64_t pixels = smaller(kChunkPixels, end - first);
    // Of a row's first pixel, without the pads.
    const auto in_row = [&](int64_t row) {
      return row / e.out.h * a.in.image_stride + row % e.out.h * g.stride_h * a.in.row_stride;
    };
    const auto row_start = [&](const QTensor& t, int64_t row) {
      return row / e.out.h * t.image_stride + row % e.out.h * t.row_stride;
    };
    const int64_t row0 = first / e.out.w, x0 = first % e.out.w;
    const int64_t in = in_row(row0), out = row_start(e.out, row0), residual = row_start(e.residual, row0);
    for (int64_t i = 0, row = row0, x = x0; i < pixels; ++row, x = 0) {
      const int64_t to_in = in_row(row) - in, to_out = row_start(e.out, row) - out,
                    to_residual = row_start(e.residual, row) - residual;
      for (; x < e.out.w && i < pixels; ++x, ++i)
        places[i] = {static_cast<int32_t>(to_in + x * g.stride_w * a.in.c_pitch),
                     static_cast<int32_t>(to_out + x * e.out.c_pitch),
                     static_cast<int32_t>(to_residual + x * e.residual.c_pitch)};
    }
    for (int64_t b = blocks.begin; b < blocks.end; ++b) {
      tile.in = a.in.data + in - g.pad_top * a.in.row_stride - g.pad_left * a.in.c_pitch + block_channel_offset(g, b);
      tile.panel = a.weights + b * l.segments * l.dwords * 64;
      tile.acc_init = a.acc_init + b * 16;
      tile.channel = b * 16;
      tile.out = e.out.data ? e.out.data + out + b * 16 : nullptr;
      tile.residual = e.residual.data ? e.residual.data + residual + b * 16 : nullptr;
      for_each_tile(tile, g.out_channels - b * 16 <= 8 ? half : whole, places, pixels, first);
    }
  }
}

}  // namespace

void add_avx_vnni_kernels(KernelTable& table) {
  add_winograd(table, Isa::kAvxVnni);
  set_direct_conv(table, conv_avx_vnni, Isa::kAvxVnni,
                  [](const ConvArgs& a, int threads) { return cost_at_rate(a, threads, 45); });
}

}  // namespace octet::kernels

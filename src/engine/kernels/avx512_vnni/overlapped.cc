// 1x1 convolutions: the finish of one tile runs between the products of the next.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/overlapped_tiles.h"
#include "engine/kernels/avx512_vnni/row_runs.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMostDwords = 128;  // with more the finish hardly counts, and a tile's weights leave the L1 cache

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  return g.kernel_h == 1 && g.kernel_w == 1 && g.groups == 1 && g.pad_top == 0 && g.pad_left == 0 &&
         padded_channels(g.out_channels) >= kTileChannels && pixel_bytes(g) % (4 * kDwordsAtOnce) == 0 &&
         pixel_bytes(g) >= 4 * kLeastDwords && pixel_bytes(g) <= 4 * kMostDwords && a.epilogue.out.w >= kPixels &&
         overlapped_finish_applies(a.epilogue);
}

// The rows [rows.begin, rows.end) of one image, counted over all images; of all of them where they are one line.
Pixels pixels_of(const ConvArgs& a, Range rows, int64_t block) {
  const QTensor &in = a.in, &out = a.epilogue.out, &residual = a.epilogue.residual;
  const ConvGeometry& g = a.geometry;
  const int64_t n = rows.begin / out.h, y = rows.begin % out.h, channel = block * kChannelBlock;
  Pixels p;
  p.in = in.data + n * in.image_stride + y * g.stride_h * in.row_stride;
  p.in_step = g.stride_w * in.c_pitch;
  p.out = out.data + n * out.image_stride + y * out.row_stride + channel;
  p.out_step = out.c_pitch;
  if (residual.data) p.residual = residual.data + n * residual.image_stride + y * residual.row_stride + channel;
  p.residual_step = residual.c_pitch;
  p.width = out.w, p.count = (rows.end - rows.begin) * out.w;
  p.in_gap = g.stride_h * in.row_stride - out.w * p.in_step;
  p.out_gap = out.row_stride - out.w * p.out_step;
  p.residual_gap = residual.row_stride - out.w * p.residual_step;
  return p;
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  const Epilogue& e = a.epilogue;
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const ConvLayout l = conv_layout(a.geometry, a.in.c_pitch);
  Weights w{.block_bytes = l.segments * l.dwords * 64, .dwords = l.dwords};
  TileFinish f;
  f.codes = make_register_finish(e);
  const bool one_line = is_one_line(a);
  RunPixels* const run_pixels = w.dwords == 16 && one_line ? kernel_of<true>(e) : kernel_of<false>(e);
  int64_t b = blocks.begin;
  for (; b + kVectors <= blocks.end; b += kVectors) {
    load_channels(a, b, f);
    w.begin = a.weights + b * w.block_bytes;
    w.ahead = w.begin + kVectors * w.block_bytes;
    w.ahead_end = a.weights + smaller(b + 2 * kVectors, blocks.end) * w.block_bytes;
    if (w.ahead >= w.ahead_end && a.soon.bytes)
      w.ahead = reinterpret_cast<const int8_t*>(a.soon.data), w.ahead_end = w.ahead + a.soon.bytes;
    if (w.ahead >= w.ahead_end) w.ahead = w.begin;
    for (int64_t row = rows.begin; row < rows.end;) {
      const int64_t end = one_line ? rows.end : smaller(rows.end, (row / e.out.h + 1) * e.out.h);
      run_pixels(f, pixels_of(a, {row, end}, b), w);
      row = end;
    }
  }
  conv_avx512_vnni(a, rows, {b, blocks.end});
}

// As that of "direct", with less for the finish.
double cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const double vectors = static_cast<double>(out.n * out.h * out.w * padded_channels(out.c)) / kChannelBlock;
  const double finish = a.epilogue.residual.data ? 5 : 2.5;  // cycles
  return 0.7 + cost_at_rate(a, threads, 105) + vectors * finish / (3500.0 * threads);
}

}  // namespace

ConvTactic overlapped_tactic() {
  return {.name = "overlapped",
          .isa = Isa::kAvx512Vnni,
          .applies = applies,
          .run = run,
          .fetches_ahead = true,
          .cost = cost};
}

}  // namespace octet::kernels

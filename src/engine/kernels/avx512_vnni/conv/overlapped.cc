// 1x1 convolutions: the finish of one tile runs between the products of the next.
#include "engine/kernels/avx512_vnni/conv/overlapped_tiles.h"
#include "engine/kernels/avx512_vnni/conv/row_runs.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

constexpr int kNarrow = 2;             // vectors of a tile where there are not four
constexpr int64_t kMostBytes = 32768;  // of a tile's weights: what the L1 cache holds; besides, with more dwords the
                                       // finish hardly counts

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const int64_t bytes = pixel_bytes(g), channels = padded_channels(g.out_channels);
  if (g.kernel_h > 1 || g.kernel_w > 1 || g.groups > 1 || g.pad_top > 0 || g.pad_left > 0) return false;
  if (bytes % (4 * kDwordsAtOnce) != 0 || bytes < 4 * kLeastDwords || !overlapped_finish_applies(e)) return false;
  if (channels >= kUnit * kChannelBlock)
    return bytes * kUnit * kChannelBlock <= kMostBytes && e.out.w >= kPixels<kUnit>;
  return channels >= kNarrow * kChannelBlock && bytes * kNarrow * kChannelBlock <= kMostBytes && is_one_line(a) &&
         e.out.w >= kPixels<kNarrow>;
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

// Blocks from `b` on, V at once. Returns the first that is left.
template <int V>
int64_t run_blocks(const ConvArgs& a, RunPixels* run_pixels, Range rows, Range blocks, bool relu, TileFinish& f) {
  const ConvLayout l = conv_layout(a.geometry, a.in.c_pitch);
  Weights w{.block_bytes = l.segments * l.dwords * 64, .dwords = l.dwords};
  w.soon = a.soon.bytes > 0 ? reinterpret_cast<const int8_t*>(a.soon.data) : a.weights;
  w.soon_end = w.soon + a.soon.bytes;
  const bool one_line = is_one_line(a);
  int64_t b = blocks.begin;
  for (; b + V <= blocks.end; b += V) {
    load_channels<V>(a, b, relu, f);
    w.begin = a.weights + b * w.block_bytes;
    w.ahead = w.begin + V * w.block_bytes;
    w.ahead_end = a.weights + smaller(b + 2 * V, blocks.end) * w.block_bytes;
    if (w.ahead >= w.ahead_end) w.ahead = w.begin;
    for (int64_t row = rows.begin; row < rows.end;) {
      const int64_t end = one_line ? rows.end : smaller(rows.end, (row / a.epilogue.out.h + 1) * a.epilogue.out.h);
      run_pixels(f, pixels_of(a, {row, end}, b), w);
      row = end;
    }
  }
  return b;
}

RunPixels* wide_kernel(const ConvArgs& a, bool relu) {
  const Epilogue& e = a.epilogue;
  const bool sixteen = pixel_bytes(a.geometry) == 64 && is_one_line(a);
  if (e.residual.data == nullptr)
    return sixteen ? kernel_without_sum<Walk::kSixteen, kUnit>(relu) : kernel_without_sum<Walk::kRows, kUnit>(relu);
  switch (limits_of(e)) {
    case Limits::kPlain:
      return sixteen ? kernel_of_sum<Walk::kSixteen, kUnit, Limits::kPlain>(e)
                     : kernel_of_sum<Walk::kRows, kUnit, Limits::kPlain>(e);
    case Limits::kUpper:
      return sixteen ? kernel_of_sum<Walk::kSixteen, kUnit, Limits::kUpper>(e)
                     : kernel_of_sum<Walk::kRows, kUnit, Limits::kUpper>(e);
    default:
      return kernel_of_sum<Walk::kRows, kUnit, Limits::kBoth>(e);
  }
}
RunPixels* narrow_kernel(const Epilogue& e, bool relu) {
  return e.residual.data ? kernel_of_sum<Walk::kOneLine, kNarrow, Limits::kBoth>(e)
                         : kernel_without_sum<Walk::kOneLine, kNarrow>(relu);
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  const Epilogue& e = a.epilogue;
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  TileFinish f;
  f.codes = make_register_finish(e);
  const bool relu = relu_shortcut(a, a.geometry.in_channels);
  if (padded_channels(a.geometry.out_channels) >= kUnit * kChannelBlock)
    blocks.begin = run_blocks<kUnit>(a, wide_kernel(a, relu), rows, blocks, relu, f);
  if (is_one_line(a) && e.out.w >= kPixels<kNarrow>)
    blocks.begin = run_blocks<kNarrow>(a, narrow_kernel(e, relu), rows, blocks, relu, f);
  conv_avx512_vnni(a, rows, blocks);
}

// As that of "direct", with less for the finish.
double cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const double vectors = static_cast<double>(out.n * out.h * out.w * padded_channels(out.c)) / kChannelBlock;
  const double finish = a.epilogue.residual.data ? 5 : 2.5;  // cycles
  return 0.7 + cost_at_rate(a, threads, 105) + vectors * finish / (cpu_model().cycles_per_us * threads);
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

// Convolutions over images: pixels of one to three channels without the bytes that fill them up to four.
//
// A row of the kernel then is a run of kernel_w * channels bytes, not of kernel_w dwords: 7 pixels of RGB are 6 dwords.
// Rows of the input are packed for a few rows of the output at a time, which stay in the L1 cache.
//
// Or, for RGB with AVX512-VBMI, columns: the pixels of all rows of the kernel one below the other, anew for every row
// of the output. Then the whole kernel is one run: 7x7 pixels are 37 dwords instead of 42.
#include <cstring>

#include "engine/kernels/avx512_vnni/conv/overlapped_tiles.h"
#include "engine/kernels/avx512_vnni/conv/row_runs.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/lookup.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

constexpr int64_t kRowsAtOnce = 8, kColumnRowsAtOnce = 4;  // of the output
constexpr int64_t kSlack = 64;      // stores write whole vectors, and the last run is read up to its last dword
constexpr int64_t kMostRows = 8;    // of the kernel, for columns
constexpr int64_t kPixelsOnce = 4;  // of each row, for columns

// What is packed for a few output rows.
struct Packing {
  int64_t channels = 0, pixels = 0;  // of a pixel; of a row of the input
  bool columns = false;              // or rows
  int64_t runs = 0, dwords = 0;      // of a kernel; of a run
  int64_t pixel_bytes = 0;           // between pixels of a row
  int64_t rows_at_once = 0;          // of the output
  int64_t rows = 0, row_bytes = 0;   // that are packed for them
  explicit Packing(const ConvArgs& a) {
    const ConvGeometry& g = a.geometry;
    channels = g.in_channels;
    pixels = (a.epilogue.out.w - 1) * g.stride_w + g.kernel_w;
    const int64_t in_rows = (g.kernel_w * channels + 3) / 4, in_columns = (g.kernel_h * g.kernel_w * channels + 3) / 4;
    // Packing columns costs about as much as one dword of the products.
    columns = channels == 3 && g.kernel_h <= kMostRows && has_vbmi() && in_columns + 1 < g.kernel_h * in_rows;
    runs = columns ? 1 : g.kernel_h;
    dwords = columns ? in_columns : in_rows;
    pixel_bytes = columns ? g.kernel_h * channels : channels;
    rows_at_once = columns ? kColumnRowsAtOnce : kRowsAtOnce;
    rows = columns ? rows_at_once : (rows_at_once - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1;
    row_bytes = (pixels * pixel_bytes + 63) / 64 * 64 + 2 * kSlack;
  }
};

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  return g.groups == 1 && g.dilation_w == 1 && g.in_channels < 4 && a.in.c_pitch == 4 &&
         (g.kernel_w * g.in_channels + 3) / 4 < g.kernel_w;
}

int64_t prepared_bytes(const ConvArgs& a) {
  const int64_t blocks = padded_channels(a.geometry.out_channels) / kChannelBlock;
  const Packing p(a);
  return blocks * p.runs * p.dwords * 64;
}

void prepare(const ConvArgs& a, std::byte* prepared) {
  const ConvGeometry& g = a.geometry;
  const Packing p(a);
  std::memset(prepared, 0, static_cast<size_t>(prepared_bytes(a)));
  const int8_t* from = a.weights;
  for (int64_t block = 0; block < padded_channels(g.out_channels) / kChannelBlock; ++block)
    for (int64_t y = 0; y < g.kernel_h; ++y)
      for (int64_t x = 0; x < g.kernel_w; ++x, from += 64)
        for (int64_t c = 0; c < p.channels; ++c) {
          const int64_t run = p.columns ? 0 : y, byte = x * p.pixel_bytes + (p.columns ? y * p.channels : 0) + c;
          std::byte* to = prepared + ((block * p.runs + run) * p.dwords + byte / 4) * 64 + byte % 4;
          for (int64_t lane = 0; lane < kChannelBlock; ++lane)
            to[lane * 4] = static_cast<std::byte>(from[lane * 4 + c]);
        }
}

int64_t scratch_bytes(const ConvArgs& a) {
  const Packing p(a);
  return p.rows * p.row_bytes;
}

// Sixteen pixels of four bytes at a time.
template <int C>
void pack_row(const uint8_t* from, int64_t pixels, uint8_t* to) {
  const Z places = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const Z order = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
  for (int64_t x = 0; x < pixels; x += 16, from += 64, to += 16 * C) {
    const Z codes = _mm512_loadu_si512(from);
    if constexpr (C == 1) store16(to, _mm512_cvtepi32_epi8(codes));
    if constexpr (C == 2) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(codes));
    if constexpr (C == 3) _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_shuffle_epi8(codes, places)));
  }
}

// Columns of RGB: which of the bytes of four pixels in each of eight rows become those of four columns.
struct ColumnOrder {
  alignas(64) uint8_t index[128] = {};
  explicit ColumnOrder(int64_t kernel_rows) {
    for (int64_t i = 0; i < kPixelsOnce * kernel_rows * 3; ++i) {
      const int64_t pixel = i / (kernel_rows * 3), row = i / 3 % kernel_rows, channel = i % 3;
      index[i] = static_cast<uint8_t>(row * 16 + pixel * 4 + channel);
    }
  }
};

// from: the first pixel of the first row of the kernel.
void pack_columns(const ConvArgs& a, const ColumnOrder& order, const uint8_t* from, const Packing& p, uint8_t* to) {
  const uint8_t* row[kMostRows];
  for (int64_t i = 0; i < kMostRows; ++i)
    row[i] = from + smaller(i, a.geometry.kernel_h - 1) * a.geometry.dilation_h * a.in.row_stride;
  const Z first = _mm512_load_si512(order.index), second = _mm512_load_si512(order.index + 64);
  const auto four_rows = [&](const uint8_t* const* r, int64_t at) __attribute__((always_inline)) {
    Z v = _mm512_castsi128_si512(load16(r[0] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, load16(r[1] + at));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, load16(r[2] + at));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, load16(r[3] + at));
  };
  for (int64_t x = 0; x < p.pixels; x += kPixelsOnce, to += kPixelsOnce * p.pixel_bytes) {
    const Z low = four_rows(row, x * 4), high = four_rows(row + 4, x * 4);
    _mm512_storeu_si512(to, permute128(first, low, high));
    _mm512_storeu_si512(to + 64, permute128(second, low, high));
  }
}

// The products of packed columns, one run for each pixel: rows of one image. Returns the first block that is left.
int64_t run_columns(const ConvArgs& a, const Packing& p, const uint8_t* packed, Range rows, Range blocks) {
  const QTensor& out = a.epilogue.out;
  if (a.epilogue.residual.data || p.dwords < kLeastDwords || out.w < kPixels<kUnit> ||
      !overlapped_finish_applies(a.epilogue))
    return blocks.begin;
  const int64_t n = rows.begin / out.h, y = rows.begin % out.h;
  Pixels pixels;
  pixels.in = packed;
  pixels.in_step = a.geometry.stride_w * p.pixel_bytes, pixels.in_gap = p.row_bytes - out.w * pixels.in_step;
  pixels.out_step = out.c_pitch, pixels.out_gap = out.row_stride - out.w * out.c_pitch;
  pixels.width = out.w, pixels.count = (rows.end - rows.begin) * out.w;
  Weights w{.block_bytes = p.dwords * 64, .dwords = p.dwords};
  TileFinish f;
  f.codes = make_register_finish(a.epilogue);
  const ConvGeometry& g = a.geometry;
  const bool relu = relu_shortcut(a, g.kernel_h * g.kernel_w * g.in_channels);
  RunPixels* const run_pixels = kernel_without_sum<Walk::kRows, kUnit>(relu);
  int64_t b = blocks.begin;
  for (; b + kUnit <= blocks.end; b += kUnit) {
    load_channels<kUnit>(a, b, relu, f);
    w.begin = w.ahead = w.ahead_end = w.soon = w.soon_end =
        reinterpret_cast<const int8_t*>(a.prepared) + b * w.block_bytes;
    pixels.out = out.data + n * out.image_stride + y * out.row_stride + b * kChannelBlock;
    run_pixels(f, pixels, w);
  }
  return b;
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const Packing p(a);
  const auto pack = p.channels == 1 ? pack_row<1> : p.channels == 2 ? pack_row<2> : pack_row<3>;
  auto* const packed = reinterpret_cast<uint8_t*>(a.scratch);
  RowRuns runs{.first = packed,
               .line_step = (p.columns ? 1 : g.stride_h) * p.row_bytes,
               .pixel_step = g.stride_w * p.pixel_bytes,
               .kernel_rows = p.runs,
               .row_step = g.dilation_h * p.row_bytes,
               .dwords = p.dwords,
               .weights = reinterpret_cast<const int8_t*>(a.prepared),
               .block_bytes = p.runs * p.dwords * 64};
  const ColumnOrder order(p.columns ? g.kernel_h : 0);
  ConvArgs image = a;
  image.in.image_stride = 0;
  const int64_t height = a.epilogue.out.h;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / height, y = row % height;
    const int64_t count = smaller(p.rows_at_once, smaller(rows.end - row, height - y));
    const uint8_t* from =
        a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride - g.pad_left * a.in.c_pitch;
    if (p.columns) {
      for (int64_t i = 0; i < count; ++i)
        pack_columns(a, order, from + i * g.stride_h * a.in.row_stride, p, packed + i * p.row_bytes);
    } else {
      const int64_t needed = (count - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1;
      for (int64_t i = 0; i < needed; ++i) pack(from + i * a.in.row_stride, p.pixels, packed + i * p.row_bytes);
    }
    runs.first_line = y;
    const Range now{row, row + count};
    const int64_t left = p.columns ? run_columns(a, p, packed, now, blocks) : blocks.begin;
    if (left < blocks.end) conv_row_runs(image, runs, now, {left, blocks.end});
    row += count;
  }
}

// As that of "direct", for fewer products.
double cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const double outputs = static_cast<double>(out.n * out.h * out.w) * static_cast<double>(a.geometry.out_channels);
  return 0.7 + cost_at_rate(a, threads, 115) + outputs / 16 * 3.5 / (cpu_model().cycles_per_us * threads);
}

}  // namespace

ConvTactic packed_pixels_tactic() {
  return {.name = "packed_pixels",
          .isa = Isa::kAvx512Vnni,
          .applies = applies,
          .prepared_bytes = prepared_bytes,
          .prepare = prepare,
          .scratch_bytes = scratch_bytes,
          .run = run,
          .cost = cost};
}

}  // namespace octet::kernels

// Convolutions over images: pixels of one to three channels without the bytes that fill them up to four.
//
// A row of the kernel then is a run of kernel_w * channels bytes, not of kernel_w dwords: 7 pixels of RGB are 6 dwords.
// Rows of the input are packed for a few rows of the output at a time, which stay in the L1 cache.
#include <cstring>

#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/row_runs.h"

namespace octet::kernels {
namespace {

constexpr int64_t kRowsAtOnce = 8;  // of the output
constexpr int64_t kSlack = 64;      // stores write whole vectors, and the last run is read up to its last dword

// What is packed for kRowsAtOnce output rows.
struct Packing {
  int64_t channels = 0, dwords = 0;             // of a pixel; of a kernel row
  int64_t pixels = 0, rows = 0, row_bytes = 0;  // of the input
  explicit Packing(const ConvArgs& a) {
    const ConvGeometry& g = a.geometry;
    channels = g.in_channels;
    dwords = (g.kernel_w * channels + 3) / 4;
    pixels = (a.epilogue.out.w - 1) * g.stride_w + g.kernel_w;
    rows = (kRowsAtOnce - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1;
    row_bytes = (pixels * channels + 63) / 64 * 64 + kSlack;
  }
};

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  return g.groups == 1 && g.dilation_w == 1 && g.in_channels < 4 && a.in.c_pitch == 4 && Packing(a).dwords < g.kernel_w;
}

int64_t prepared_bytes(const ConvArgs& a) {
  const int64_t blocks = padded_channels(a.geometry.out_channels) / kChannelBlock;
  return blocks * a.geometry.kernel_h * Packing(a).dwords * 64;
}

void prepare(const ConvArgs& a, std::byte* prepared) {
  const ConvGeometry& g = a.geometry;
  const Packing p(a);
  const int64_t rows = padded_channels(g.out_channels) / kChannelBlock * g.kernel_h;
  std::memset(prepared, 0, static_cast<size_t>(rows * p.dwords * 64));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t x = 0; x < g.kernel_w; ++x)
      for (int64_t c = 0; c < p.channels; ++c) {
        const int64_t byte = x * p.channels + c;
        const int8_t* from = a.weights + (row * g.kernel_w + x) * 64 + c;
        std::byte* to = prepared + (row * p.dwords + byte / 4) * 64 + byte % 4;
        for (int64_t lane = 0; lane < kChannelBlock; ++lane) to[lane * 4] = static_cast<std::byte>(from[lane * 4]);
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

void run(const ConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const Packing p(a);
  const auto pack = p.channels == 1 ? pack_row<1> : p.channels == 2 ? pack_row<2> : pack_row<3>;
  auto* const packed = reinterpret_cast<uint8_t*>(a.scratch);
  RowRuns runs{.first = packed,
               .line_step = g.stride_h * p.row_bytes,
               .pixel_step = g.stride_w * p.channels,
               .kernel_rows = g.kernel_h,
               .row_step = g.dilation_h * p.row_bytes,
               .dwords = p.dwords,
               .weights = reinterpret_cast<const int8_t*>(a.prepared),
               .block_bytes = g.kernel_h * p.dwords * 64};
  ConvArgs image = a;
  image.in.image_stride = 0;
  const int64_t height = a.epilogue.out.h;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / height, y = row % height;
    const int64_t count = smaller(kRowsAtOnce, smaller(rows.end - row, height - y));
    const int64_t needed = (count - 1) * g.stride_h + (g.kernel_h - 1) * g.dilation_h + 1;
    const uint8_t* from =
        a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride - g.pad_left * a.in.c_pitch;
    for (int64_t i = 0; i < needed; ++i) pack(from + i * a.in.row_stride, p.pixels, packed + i * p.row_bytes);
    runs.first_line = y;
    conv_row_runs(image, runs, {row, row + count}, blocks);
    row += count;
  }
}

// As that of "direct", for fewer products.
double cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const double outputs = static_cast<double>(out.n * out.h * out.w) * static_cast<double>(a.geometry.out_channels);
  return 0.7 + cost_at_rate(a, threads, 115) + outputs / 16 * 3.5 / (3500.0 * threads);
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

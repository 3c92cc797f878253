// Convolutions with a stride whose rows of outputs are shorter than a tile.
//
// Tiles take equally spaced pixels. With a stride that ends at each row, so 7 outputs fill 7 of the 16 rows of a tile
// and weights are loaded for half the use. Here the pixels of each phase of the stride are first copied into a plane of
// their own (stride 2: even or odd rows, even or odd columns), as many planes as the kernel has phases. On planes the
// stride is 1, and all rows of a band form one line.
#include "engine/kernels/amx/cost.h"
#include "engine/kernels/amx/run_blocks.h"
#include "engine/kernels/amx/tactics.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

constexpr int64_t kStepBytes = 64;  // of a pixel
constexpr int64_t kMaxSteps = 1024;
constexpr int64_t kMaxBandRows = 32;

struct Planes {
  int64_t phases_h = 0, phases_w = 0;
  int64_t band_rows = 0;             // output rows at a time
  int64_t rows = 0, pitch = 0;       // of a plane, in pixels
  int64_t row_bytes = 0, bytes = 0;  // of a plane
  int64_t step_count = 0;

  explicit Planes(const ConvArgs& a) {
    const ConvGeometry& g = a.geometry;
    phases_h = smaller(g.stride_h, g.kernel_h), phases_w = smaller(g.stride_w, g.kernel_w);
    band_rows = smaller(a.epilogue.out.h, kMaxBandRows);
    rows = band_rows + (g.kernel_h - 1) / g.stride_h;
    pitch = a.epilogue.out.w + (g.kernel_w - 1) / g.stride_w;
    row_bytes = pitch * pixel_bytes(g), bytes = rows * row_bytes;
    step_count = g.kernel_h * g.kernel_w * pixel_bytes(g) / kStepBytes;
  }
};

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  return g.groups == 1 && g.stride_h > 1 && g.stride_w > 1 && g.stride_h <= 4 && g.stride_w <= 4 && g.kernel_h <= 8 &&
         g.kernel_w <= 8 && g.dilation_h == 1 && g.dilation_w == 1 && out.w >= kTileRows / 4 && out.w < kTileRows &&
         (out.data == nullptr || out.c_pitch >= 16) && pixel_bytes(g) % kStepBytes == 0 &&
         Planes(a).step_count <= kMaxSteps && rows_fit(a);
}

int64_t scratch_bytes(const ConvArgs& a) {
  const Planes p(a);
  return p.phases_h * p.phases_w * p.bytes;
}

void copy_pixel(const uint8_t* from, uint8_t* to, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) _mm512_store_si512(to + i, _mm512_loadu_si512(from + i));
}

// What `take` rows of outputs read; `in` is the first pixel that the first of them reads.
void fill_planes(const ConvArgs& a, const Planes& p, const uint8_t* in, int64_t take, uint8_t* to) {
  const ConvGeometry& g = a.geometry;
  const int64_t bytes = pixel_bytes(g);
  for (int64_t y = 0; y < p.phases_h; ++y)
    for (int64_t x = 0; x < p.phases_w; ++x, to += p.bytes) {
      const int64_t rows = take + (g.kernel_h - 1 - y) / g.stride_h;
      const int64_t columns = a.epilogue.out.w + (g.kernel_w - 1 - x) / g.stride_w;
      for (int64_t row = 0; row < rows; ++row) {
        const uint8_t* from = in + (row * g.stride_h + y) * a.in.row_stride + x * a.in.c_pitch;
        for (int64_t c = 0; c < columns; ++c)
          copy_pixel(from + c * g.stride_w * a.in.c_pitch, to + row * p.row_bytes + c * bytes, bytes);
      }
    }
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  const Planes p(a);
  auto* scratch = reinterpret_cast<uint8_t*>(a.scratch);
  KStep steps[kMaxSteps];
  TileWork work;
  work.source = {nullptr, pixel_bytes(g), p.row_bytes, 0};
  work.pitch = p.pitch;
  for (int64_t y = 0; y < g.kernel_h; ++y)
    for (int64_t x = 0; x < g.kernel_w; ++x) {
      const int64_t plane = y % g.stride_h * p.phases_w + x % g.stride_w;
      const int64_t at = plane * p.bytes + y / g.stride_h * p.row_bytes + x / g.stride_w * pixel_bytes(g);
      for (int64_t c = 0; c < pixel_bytes(g); c += kStepBytes, ++work.step_count)
        steps[work.step_count] = {static_cast<int32_t>(at + c), static_cast<int32_t>(work.step_count * kTileBytes)};
    }
  work.steps = steps;
  work.chunk_dwords = kStepBytes / 4;
  work.weights = a.weights;
  work.block_bytes = work.next_block = work.step_count * kTileBytes;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / out.h, y = row % out.h;
    const int64_t take = smaller(smaller(rows.end - row, out.h - y), p.band_rows);
    fill_planes(
        a, p,
        a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride - g.pad_left * a.in.c_pitch,
        take, scratch);
    fence_writes();
    work.source.first = scratch - y * p.row_bytes;
    run_blocks<2, 2, Walk::kWholeStreaming>(work, a, {row, row + take}, blocks);
    row += take;
  }
}

double cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const Planes p(a);
  const BandShape band = band_shape(p.band_rows, out.w, p.pitch);
  const int64_t bands = (out.h + p.band_rows - 1) / p.band_rows;
  const int64_t tiles = out.n * bands * band.tiles_per_line * (band.pitch > 0 ? 1 : p.band_rows);
  const double copy = static_cast<double>(out.n * bands * scratch_bytes(a)) / 16;  // cycles
  return microseconds({tiles, padded_channels(out.c) / 16, p.step_count, 29, 0}, a.epilogue, threads) +
         copy / cpu_model().cycles_per_us;
}

}  // namespace

ConvTactic planes_tactic() {
  return {.name = "planes",
          .isa = Isa::kAmxInt8,
          .applies = applies,
          .scratch_bytes = scratch_bytes,
          .run = run,
          .cost = cost};
}

}  // namespace octet::kernels

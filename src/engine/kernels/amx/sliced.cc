// Convolutions with 3 columns of taps whose weights do not fit the L1 cache.
//
// Two blocks of 16 channels have 144 KiB of weights at 3x3x512, which the plain walk reads from the L2 cache again for
// every block of pixels. Here K is cut into slices whose weights (24 KiB) stay in the L1 cache while all blocks of
// pixels of a band pass; between two slices their sums wait in memory. A slice takes 64 channels after 64 channels and
// the three columns of taps in turn, so a pixel is loaded three times in a row, and what the next 64 channels need is
// fetched into the L1 cache during these three steps.
#include "engine/kernels/amx/conv_tiles.h"
#include "engine/kernels/amx/cost.h"
#include "engine/kernels/amx/run_blocks.h"
#include "engine/kernels/amx/tactics.h"

namespace octet::kernels {
namespace {

constexpr int64_t kColumns = 3;
constexpr int64_t kStepBytes = 64;  // of a pixel
constexpr int64_t kSliceSteps = 12;
constexpr int64_t kMaxSteps = 1024;
constexpr int64_t kPair = 2;  // tiles of pixels, and of channels, of a block
static_assert(kColumns * kFetchedPixels >= kPair * kTileRows + kColumns - 1);

int64_t step_count(const ConvArgs& a) {
  return a.geometry.kernel_h * pixel_bytes(a.geometry) / kStepBytes * kColumns;
}

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  return tiles_apply(a) && g.kernel_w == kColumns && g.stride_w == 1 && g.dilation_w == 1 &&
         pixel_bytes(g) % kStepBytes == 0 && step_count(a) > kSliceSteps && step_count(a) <= kMaxSteps;
}

int64_t blocks_of(const ConvArgs& a) {
  return padded_channels(a.geometry.out_channels) / 16;
}

// [pair of blocks of 16 channels][step, in the order of the walk][block][1 KiB]; a single last block has a pair too.
int64_t prepared_bytes(const ConvArgs& a) {
  return (blocks_of(a) + 1) / kPair * kPair * step_count(a) * kTileBytes;
}

void prepare(const ConvArgs& a, std::byte* prepared) {
  const int64_t steps = step_count(a), slices = pixel_bytes(a.geometry) / kStepBytes, blocks = blocks_of(a);
  for (int64_t b = 0; b < (blocks + 1) / kPair * kPair; ++b)
    for (int64_t s = 0; s < steps; ++s) {
      std::byte* to = prepared + ((b / kPair * steps + s) * kPair + b % kPair) * kTileBytes;
      const int64_t row = s / (slices * kColumns), slice = s / kColumns % slices, column = s % kColumns;
      const int64_t from = (row * kColumns + column) * slices + slice;
      if (b < blocks) {
        __builtin_memcpy(to, a.weights + (b * steps + from) * kTileBytes, kTileBytes);
      } else {
        __builtin_memset(to, 0, kTileBytes);
      }
    }
}

int64_t scratch_bytes(const ConvArgs& a) {
  const QTensor& out = a.epilogue.out;
  const int64_t most = kMaxBandPixels / out.w, rows = out.h < most ? out.h : most;
  return (rows * tiles_of(out.w) + kPair) * kPair * kTileBytes;
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  // Half a pair: not as prepared.
  if (blocks.begin % kPair != 0) return run_tiles({.blocking = Blocking::k2x2}, a, rows, blocks);
  const ConvGeometry& g = a.geometry;
  KStep steps[kMaxSteps];
  TileWork work;
  work.source = tile_source(a);
  work.pitch = line_pitch(a);
  work.steps = steps;
  work.step_count = step_count(a);
  work.chunk_dwords = kStepBytes / 4;
  work.weights = reinterpret_cast<const int8_t*>(a.prepared);
  work.block_bytes = work.step_count * kTileBytes;
  work.next_block = kTileBytes;
  work.slice_steps = kSliceSteps;
  work.partial_sums = a.scratch;
  int64_t count = 0;
  for (int64_t y = 0; y < g.kernel_h; ++y)
    for (int64_t c = 0; c < pixel_bytes(g); c += kStepBytes)
      for (int64_t x = 0; x < kColumns; ++x, ++count)
        steps[count] = {static_cast<int32_t>(y * g.dilation_h * a.in.row_stride + x * a.in.c_pitch + c),
                        static_cast<int32_t>(count * kPair * kTileBytes), 0};
  for (int64_t s = 0; s < count; ++s) {
    // The next 64 channels; after the slice, its first ones of the pixels of the next block.
    int64_t next = s - s % kColumns + kColumns, pixel = s % kColumns * kFetchedPixels;
    if (next % kSliceSteps == 0 || next == count) next = s / kSliceSteps * kSliceSteps, pixel += kPair * kTileRows;
    steps[s].fetch = static_cast<int32_t>(steps[next].in + pixel * work.source.pixel_step);
  }
  run_blocks<kPair, kPair, Walk::kSliced>(work, a, rows, blocks);
}

double cost(const ConvArgs& a, int threads) {
  // The first block of pixels of every slice finds its weights in the L2 cache.
  const auto blocks = static_cast<double>(a.epilogue.out.n * a.epilogue.out.h * a.epilogue.out.w) /
                      static_cast<double>(kPair * kTileRows * threads);
  const int64_t bytes = pixel_bytes(a.geometry);
  const double cycles = bytes > 256 ? 25.5 : bytes > 128 ? 23.5 : 19.5;
  return tiles_cost_at(cycles + 16 / blocks, a, threads);
}

}  // namespace

ConvTactic sliced_tactic() {
  return {.name = "sliced",
          .isa = Isa::kAmxInt8,
          .applies = applies,
          .prepared_bytes = prepared_bytes,
          .prepare = prepare,
          .scratch_bytes = scratch_bytes,
          .run = run,
          .cost = cost};
}

}  // namespace octet::kernels

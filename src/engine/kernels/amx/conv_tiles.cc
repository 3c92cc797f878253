#include "engine/kernels/amx/conv_tiles.h"

#include "engine/kernels/amx/cost.h"
#include "engine/kernels/amx/run_blocks.h"
#include "engine/kernels/amx/tactics.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMaxSteps = 1024;

// All segments are cut into equal chunks of at most 16 dwords, so that one tile configuration serves the layer.
int64_t chunk_dwords(int64_t dwords) {
  for (int64_t d = kTileRows; d > 1; --d)
    if (dwords % d == 0) return d;
  return 1;
}

int64_t block_bytes(const ConvLayout& l) {
  return l.segments * l.dwords * 64;
}

template <int MT, int NT>
void run(const TileChoice& choice, const TileWork& work, const ConvArgs& a, Range rows, Range blocks) {
  if (choice.stream_weights) return run_blocks<MT, NT, Walk::kWholeStreaming>(work, a, rows, blocks);
  run_blocks<MT, NT, Walk::kWhole>(work, a, rows, blocks);
}

template <Blocking B>
void run_with(const ConvArgs& a, Range rows, Range blocks) {
  TileChoice choice = choose_blocking(a, rows, blocks);
  choice.blocking = B;
  run_tiles(choice, a, rows, blocks);
}

// Cycles of one multiplication, by where its operands lie. A 2x2 block loads as many tiles as it multiplies, 4x1 and
// 1x4 five for four; 4x1 reads the fewest weights and 1x4 the most.
double multiply_cycles(Blocking blocking, int64_t panel_bytes, int64_t c_pitch) {
  const bool weights_in_l1 = panel_bytes <= 48 * 1024, pixels_in_l1 = c_pitch <= 256;
  switch (blocking) {
    case Blocking::k2x2:
      return weights_in_l1 ? 21 : 29;
    case Blocking::k4x1:
      return weights_in_l1 ? 23 : pixels_in_l1 ? 26 : 30;
    default:
      return weights_in_l1 ? 23 : 36;
  }
}

int64_t k_steps(const ConvLayout& l) {
  return l.segments * (l.dwords / chunk_dwords(l.dwords));
}

double cost_with(Blocking blocking, const ConvArgs& a, int threads) {
  const ConvLayout l = conv_layout(a.geometry, a.in.c_pitch);
  double cycles = multiply_cycles(blocking, 2 * block_bytes(l), a.in.c_pitch);
  // A narrower last block loads more for each multiplication.
  if (blocking == Blocking::k1x4 && l.blocks % 4 != 0) cycles *= 1.1;
  return tiles_cost_at(cycles, a, threads, blocking == Blocking::k1x4 ? -0.3 : blocking == Blocking::k4x1 ? 1.0 : 0.0);
}

template <Blocking B>
double cost(const ConvArgs& a, int threads) {
  return cost_with(B, a, threads);
}

}  // namespace

ConvTactic tiles_2x2_tactic() {
  return {.name = "tiles2x2",
          .isa = Isa::kAmxInt8,
          .applies = tiles_apply,
          .run = run_with<Blocking::k2x2>,
          .cost = cost<Blocking::k2x2>};
}
ConvTactic tiles_4x1_tactic() {
  return {.name = "tiles4x1",
          .isa = Isa::kAmxInt8,
          .applies = tiles_apply,
          .run = run_with<Blocking::k4x1>,
          .cost = cost<Blocking::k4x1>};
}
ConvTactic tiles_1x4_tactic() {
  return {.name = "tiles1x4",
          .isa = Isa::kAmxInt8,
          .applies = tiles_apply,
          .run = run_with<Blocking::k1x4>,
          .cost = cost<Blocking::k1x4>};
}

bool tiles_apply(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  const int64_t chunk = chunk_dwords(l.dwords), pitch = line_pitch(a);
  const int64_t line = pitch >= out.w ? (out.h - 1) * pitch + out.w : out.w;
  return g.groups == 1 && chunk >= 4 && line >= kTileRows / 4 && (out.w >= kTileRows / 4 || pitch >= out.w) &&
         (out.data == nullptr || out.c_pitch >= 16) && (pitch > out.w ? pitch : out.w) <= kMaxBandPixels &&
         l.segments * (l.dwords / chunk) <= kMaxSteps && rows_fit(a);
}

TileChoice choose_blocking(const ConvArgs& a, Range, Range blocks) {
  const int64_t bytes = block_bytes(conv_layout(a.geometry, a.in.c_pitch)), count = blocks.end - blocks.begin;
  TileChoice c;
  if (count == 1) c.blocking = Blocking::k4x1;
  if (count >= 4 && bytes > 64 * 16 && bytes <= 256 * 16) c.blocking = Blocking::k1x4;
  c.stream_weights = bytes * 2 > 30 * 1024;  // the activations and sums want the rest of the L1 cache
  // Where weights come from the L2 cache, more pixels share each of them, as long as their own bytes fit the L1 cache.
  const ConvGeometry& g = a.geometry;
  if (g.kernel_h > 1 && bytes * 2 > 64 * 1024 && a.in.c_pitch <= 256) c.blocking = Blocking::k4x1;
  c.channels_inside = bytes * count <= 20 * 1024;
  return c;
}

double tiles_cost_at(double cycles, const ConvArgs& a, int threads, double store) {
  const QTensor& out = a.epilogue.out;
  const ConvLayout l = conv_layout(a.geometry, a.in.c_pitch);
  const BandShape band = band_shape(out.h, out.w, line_pitch(a));
  const int64_t tiles = out.n * band.tiles_per_line * (band.pitch > 0 ? 1 : out.h);
  return microseconds({tiles, l.blocks, k_steps(l), cycles, store}, a.epilogue, threads);
}

double tiles_cost(const ConvArgs& a, int threads) {
  return cost_with(
      choose_blocking(a, {0, a.epilogue.out.h}, {0, conv_layout(a.geometry, a.in.c_pitch).blocks}).blocking, a,
      threads);
}

void run_tiles(const TileChoice& choice, const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const ConvGeometry& g = a.geometry;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  TileWork work;
  work.source = tile_source(a);
  work.pitch = line_pitch(a);
  work.chunk_dwords = chunk_dwords(l.dwords);
  work.weights = a.weights;
  work.block_bytes = work.next_block = block_bytes(l);
  work.channels_inside = choice.channels_inside;
  KStep steps[kMaxSteps];
  int64_t weights = 0;
  for (int64_t s = 0; s < l.segments; ++s) {
    int64_t in =
        s / l.segments_per_row * g.dilation_h * a.in.row_stride + s % l.segments_per_row * g.dilation_w * a.in.c_pitch;
    for (int64_t d = 0; d < l.dwords; d += work.chunk_dwords) {
      steps[work.step_count++] = {static_cast<int32_t>(in), static_cast<int32_t>(weights)};
      in += work.chunk_dwords * 4, weights += work.chunk_dwords * 64;
    }
  }
  work.steps = steps;
  switch (choice.blocking) {
    case Blocking::k2x2:
      return run<2, 2>(choice, work, a, rows, blocks);
    case Blocking::k4x1:
      return run<4, 1>(choice, work, a, rows, blocks);
    case Blocking::k1x4:
      return run<1, 4>(choice, work, a, rows, blocks);
  }
}

}  // namespace octet::kernels

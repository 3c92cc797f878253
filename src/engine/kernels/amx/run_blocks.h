// A whole convolution, or a thread's share of it, block by block.
#pragma once
#include "engine/kernels/amx/band.h"
#include "engine/kernels/amx/multiply_block.h"

namespace octet::kernels {
namespace {

// A convolution as the tiles see it.
struct TileWork {
  TileSource source;
  int64_t pitch = 0;  // of the source's pixels if rows of positions can form one line, else 0
  const KStep* steps = nullptr;
  int64_t step_count = 0, chunk_dwords = 0;  // steps along K; dwords of a step
  const int8_t* weights = nullptr;
  int64_t block_bytes = 0;       // of the weights of 16 channels
  int64_t next_block = 0;        // bytes within a step from one such block to the next
  bool channels_inside = false;  // all channels of a block of pixels, then the next: where the weights fit the L1 cache
  // Walk::kSliced, which excludes channels_inside:
  int64_t slice_steps = 0;
  std::byte* partial_sums = nullptr;  // of a band, kTileBytes for each tile of pixels and tile of channels of a block
};

// Offsets within an image are 32-bit.
inline bool rows_fit(const ConvArgs& a) {
  constexpr int64_t kMaxBytes = int64_t{1} << 30;
  const QTensor& out = a.epilogue.out;
  const auto bytes = [](const QTensor& t) { return t.data ? t.h * t.row_stride : 0; };
  return a.in.h * a.in.row_stride < kMaxBytes && bytes(out) < kMaxBytes && bytes(a.epilogue.residual) < kMaxBytes &&
         out.h * out.w * out.c * 4 < kMaxBytes && conv_layout(a.geometry, a.in.c_pitch).weight_bytes < kMaxBytes;
}

struct OutputPlaces {
  Places out, residual;
  std::byte* out_data = nullptr;
  const std::byte* residual_data = nullptr;
  int64_t channel_bytes = 1;
};

inline OutputPlaces output_places(const Epilogue& e) {
  OutputPlaces p;
  if (e.out.data) {
    p.out = {e.out.c_pitch, e.out.row_stride, e.out.image_stride};
    p.out_data = reinterpret_cast<std::byte*>(e.out.data);
    p.residual = {e.residual.c_pitch, e.residual.row_stride, e.residual.image_stride};
    p.residual_data = reinterpret_cast<const std::byte*>(e.residual.data);
    return p;
  }
  p.channel_bytes = 4;
  p.out = {e.out.c * 4, e.out.w * e.out.c * 4, e.out.h * e.out.w * e.out.c * 4};
  p.residual = p.out;
  p.out_data = reinterpret_cast<std::byte*>(e.float_out);
  p.residual_data = reinterpret_cast<const std::byte*>(e.float_residual);
  return p;
}

inline void finish_nothing(FinishJob&, int64_t) {}

template <int MT, int NT, Walk W>
void run_blocks(const TileWork& work, const ConvArgs& a, Range rows, Range blocks) {
  const Epilogue& e = a.epilogue;
  const OutputPlaces places = output_places(e);
  const Constants constants = make_constants(e);
  const int64_t products = work.step_count * work.chunk_dwords * 4;
  const FinishChoice finish[4] = {choose_finish<1>(a, constants, products),
                                  NT < 2 ? FinishChoice{} : choose_finish<2>(a, constants, products),
                                  NT < 4 ? FinishChoice{} : choose_finish<3>(a, constants, products),
                                  NT < 4 ? FinishChoice{} : choose_finish<4>(a, constants, products)};
  alignas(64) std::byte sums[2][MT * NT * kTileBytes];
  Band band;
  BlockPlan plan{work.steps, work.step_count, work.source.pixel_step, work.next_block};
  // Sums of one block are in the tiles, those of the block before it in memory: vector loads right behind the tile
  // stores would wait until these have left the store buffer.
  FinishJob in_tiles, in_memory;
  in_tiles.finish = finish_nothing;
  in_tiles.acc_init = a.acc_init;
  in_tiles.epilogue = &e;
  in_tiles.constants = &constants;
  in_memory = in_tiles;
  int buffer = 0;
  std::byte* held = sums[0];  // where the sums go that are in the tiles
  Prefetch prefetch;
  int64_t configured = 0;

  const auto flush = [&] {  // the sums of the last block before their buffer, tiles or places change
    store_other_sums<MT, NT, 0, 0>(held);
    for (FinishJob* job : {&in_memory, &in_tiles}) {
      job->finish(*job, job->count);
      job->finish = finish_nothing, job->in_line = InLine::kNot, job->count = job->next = 0;
    }
  };
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t n = row / e.out.h, y = row % e.out.h;
    int64_t take = smaller(rows.end - row, e.out.h - y);
    take = smaller(take, kMaxBandPixels / (work.pitch > e.out.w ? work.pitch : e.out.w));
    const BandShape shape = band_shape(take, e.out.w, work.pitch);
    const uint8_t* in = work.source.first + n * work.source.image_step + y * work.source.row_step;
    if (configured > 0) flush();
    if (shape.tile_rows != configured)
      configure_tiles(configured = shape.tile_rows, work.chunk_dwords, Roles<MT, NT>::kFirstWeights);
    band.build(shape, take, in, work.source, places.out, places.residual, MT, NT);
    const int64_t out_at = n * places.out.image + y * places.out.row;
    const int64_t residual_at = n * places.residual.image + y * places.residual.row;

    // Steps [from, to) of a block.
    const auto block = [&](int64_t tile, int64_t b, int64_t from, int64_t to) {
      const int64_t m = smaller(MT, band.tiles - tile), count = smaller(NT, blocks.end - b);
      std::byte* const partial = W == Walk::kSliced ? work.partial_sums + tile * NT * kTileBytes : nullptr;
      plan.steps = work.steps + from;
      plan.step_count = to - from;
      choose_multiply<MT, NT, W>(m, count, plan, in_memory)(plan, band.tile + tile, work.weights + b * work.block_bytes,
                                                            held, from > 0 ? partial : nullptr, in_memory, prefetch);
      in_memory = in_tiles;
      if (to < work.step_count) {
        in_tiles.finish = finish_nothing;
        in_tiles.in_line = InLine::kNot;
        in_tiles.count = 0;
        held = partial;
        return;
      }
      const int64_t pixel = band.first_pixel[tile];
      in_tiles.finish = finish[count - 1].function;
      in_tiles.in_line = count == NT ? finish[count - 1].in_line : InLine::kNot;
      in_tiles.pixels = {band.sums + pixel, band.out + pixel, band.residual + pixel};
      in_tiles.count = band.first_pixel[tile + m] - pixel;
      in_tiles.channel = b * 16;
      in_tiles.out = places.out_data + out_at + b * 16 * places.channel_bytes;
      if (places.residual_data) in_tiles.residual = places.residual_data + residual_at + b * 16 * places.channel_bytes;
      buffer ^= 1;
      in_tiles.sums = held = sums[buffer];
    };
    if (work.channels_inside) {
      for (int64_t tile = 0; tile < band.tiles; tile += MT)
        for (int64_t b = blocks.begin; b < blocks.end; b += NT) block(tile, b, 0, work.step_count);
    } else {
      const int64_t fetches = (band.tiles + MT - 1) / MT * work.step_count;
      const int64_t slice = W == Walk::kSliced ? work.slice_steps : work.step_count;
      for (int64_t b = blocks.begin; b < blocks.end; b += NT) {
        // Meanwhile the next weights come from wherever they are into the L2 cache.
        prefetch.next = work.weights + smaller(b + NT, blocks.end) * work.block_bytes;
        prefetch.end = work.weights + smaller(b + 2 * NT, blocks.end) * work.block_bytes;
        prefetch.lines = ((prefetch.end - prefetch.next) / 64 + fetches - 1) / fetches;
        for (int64_t from = 0; from < work.step_count; from += slice)
          for (int64_t tile = 0; tile < band.tiles; tile += MT)
            block(tile, b, from, smaller(from + slice, work.step_count));
      }
    }
    row += take;
  }
  if (configured > 0) flush();
  release_tiles();
}

}  // namespace
}  // namespace octet::kernels

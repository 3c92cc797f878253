// Winograd convolution (winograd.h) that transforms the weights in every run.
//
// Transformed weights take eight times the memory of the others. With many channels and few tiles they would come from
// beyond the caches each time, so here two blocks of output channels after the other are made of the weights
// themselves, a slice of the input channels at a time, which stays in the L2 cache; the products of the slices add up
// in M. Only one axis of the weights is transformed in memory. The other one takes up to four additions of three taps
// before the products that need them: on AMD's Zen 5 loads and additions beside products cost nothing, but stores do.
#include <utility>

#include "engine/kernels/avx512_vnni/finish.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/lean_winograd_transforms.h"
#include "engine/kernels/avx512_vnni/row_runs.h"
#include "engine/kernels/winograd.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMostTiles = 64, kMostInputBytes = 320 << 10;  // of V, which shares the L2 cache
constexpr int kTilesAtOnce = 14;                                 // of one product

// Tiles of the output, those with four rows and four columns in the middle: the tiles of every position are a range.
struct Tiles {
  int64_t across = 0, down = 0, count = 0;  // in an image, in all images
  int64_t ordered[kMostTiles] = {};         // the place of each tile, counted over [image][row][column], in this order
  int64_t first_whole = 0, first_narrow = 0, first_small = 0;
  int64_t input_at[kWinogradPositions] = {}, input_bytes = 0;  // V: [position][tile of it][channel], 16 bits each

  explicit Tiles(const ConvArgs& a) {
    const QTensor& out = a.epilogue.out;
    across = (out.w + kWinogradTile - 1) / kWinogradTile, down = (out.h + kWinogradTile - 1) / kWinogradTile;
    count = out.n * down * across;
    if (count > kMostTiles) return;
    int64_t next = 0;
    const auto take = [&](bool tall, bool wide) {
      for (int64_t t = 0; t < count; ++t)
        if (is_tall(out, t) == tall && is_wide(out, t) == wide) ordered[t] = next++;
    };
    take(false, true);
    first_whole = next;
    take(true, true);
    first_narrow = next;
    take(true, false);
    first_small = next;
    take(false, false);
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 6; ++x) {
        const Range range = of_position(y, x);
        input_at[y * 6 + x] = input_bytes;
        input_bytes += (range.end - range.begin) * a.geometry.in_channels * 2 + 128;
      }
  }
  int64_t row(int64_t t) const { return t / across % down; }
  bool is_tall(const QTensor& out, int64_t t) const { return out.h - row(t) * kWinogradTile > 2; }
  bool is_wide(const QTensor& out, int64_t t) const { return out.w - t % across * kWinogradTile > 2; }
  // Positions 3 and 4 of an axis are the points 2 and -2.
  Range of_position(int y, int x) const {
    const bool tall = y == 3 || y == 4, wide = x == 3 || x == 4;
    return {tall ? first_whole : 0, tall && wide ? first_narrow : tall ? first_small : wide ? first_narrow : count};
  }
};

// What is kept from run to run, made in the first one: the start and the multiplier of every output channel.
struct Kept {
  enum State : int32_t { kUnknown, kExact, kInexact };  // winograd_at_once()
  State* state;
  int32_t* starts;     // 64 times
  float* multipliers;  // one 64th
  explicit Kept(const ConvArgs& a)
      : state(reinterpret_cast<State*>(a.kept)),
        starts(reinterpret_cast<int32_t*>(a.kept + 64)),
        multipliers(reinterpret_cast<float*>(starts + padded_channels(a.geometry.out_channels))) {}
};
int64_t kept_bytes(const ConvArgs& a) {
  return 64 + padded_channels(a.geometry.out_channels) * 8;
}

// Places in the scratch memory of a thread, in bytes.
struct ScratchPlan {
  int64_t input, sums, outputs, bytes;
  ScratchPlan(const ConvArgs& a, const Tiles& tiles)
      : input(larger(kWeightBytes, padded_channels(a.geometry.out_channels) * 8)),  // see is_exact()
        sums(input + (tiles.input_bytes + 63) / 64 * 64),
        outputs(sums + tiles.count * kWinogradPositions * kVectors * kChannelBlock * 4),
        bytes(outputs + tiles.across * 16 * kVectors * kChannelBlock * 4) {}
};
struct Scratch {
  std::byte* weights;  // U in one axis: [6][tap][pair][kVectors][16][2], 16 bits each
  std::byte* input;    // V
  int32_t* sums;       // M: [tile][position][kVectors][16]
  int32_t* outputs;    // of a row of tiles: [4][pixel][kVectors][16]
  Scratch(std::byte* at, const ScratchPlan& plan)
      : weights(at),
        input(at + plan.input),
        sums(reinterpret_cast<int32_t*>(at + plan.sums)),
        outputs(reinterpret_cast<int32_t*>(at + plan.outputs)) {}
};

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  if (!winograd_applies(a) || g.in_channels % kChunk != 0 || pixel_bytes(g) != g.in_channels) return false;
  if (padded_channels(g.out_channels) < kVectors * kChannelBlock) return false;
  const Tiles tiles(a);
  return tiles.count <= kMostTiles && tiles.input_bytes <= kMostInputBytes;
}

int64_t scratch_bytes(const ConvArgs& a) {
  return ScratchPlan(a, Tiles(a)).bytes;
}

// The sums of the positive weights of every output channel, and of the absolute values of the negative ones, as
// winograd_at_once() takes them.
void add_weights(const ConvArgs& a, int32_t* sums) {
  const int64_t lines = 9 * a.geometry.in_channels / 4;
  const Z zero = _mm512_setzero_si512(), one = _mm512_set1_epi8(1);
  const int8_t* w = a.weights;
  for (int64_t b = 0; b < padded_channels(a.geometry.out_channels) / kChannelBlock; ++b, sums += 2 * kChannelBlock) {
    Z positive = zero, negative = zero;
    for (int64_t i = 0; i < lines; ++i, w += 64) {
      const Z weights = _mm512_loadu_si512(w);
      positive = _mm512_dpbusd_epi32(positive, _mm512_max_epi8(weights, zero), one);
      negative = _mm512_dpbusd_epi32(negative, _mm512_sub_epi8(zero, _mm512_min_epi8(weights, zero)), one);
    }
    _mm512_storeu_si512(sums, positive);
    _mm512_storeu_si512(sums + kChannelBlock, negative);
  }
}

bool is_exact(const ConvArgs& a, const Scratch& scratch) {
  const Kept kept(a);
  if (*kept.state == Kept::kUnknown) {
    auto* const sums = reinterpret_cast<int32_t*>(scratch.weights);
    add_weights(a, sums);
    WinogradPlan plan;
    plan.chunks = 1;
    const bool exact = winograd_at_once(a, plan, sums, kept.starts, kept.multipliers);
    for (int64_t c = 0; c < padded_channels(a.geometry.out_channels); ++c)
      kept.starts[c] = static_cast<int32_t>(static_cast<uint32_t>(a.acc_init[c]) * 64);
    *kept.state = exact ? Kept::kExact : Kept::kInexact;
  }
  return *kept.state == Kept::kExact;
}

void transform_tile(const ConvArgs& a, const Tiles& tiles, int64_t t, std::byte* v) {
  const QTensor &in = a.in, &out = a.epilogue.out;
  const ConvGeometry& g = a.geometry;
  const int64_t y = tiles.row(t) * kWinogradTile, x = t % tiles.across * kWinogradTile;
  const int64_t last_row = smaller(out.h - y, kWinogradTile) + 1, last_column = smaller(out.w - x, kWinogradTile) + 1;
  const uint8_t* first = in.data + t / (tiles.across * tiles.down) * in.image_stride + (y - g.pad_top) * in.row_stride +
                         (x - g.pad_left) * in.c_pitch;
  TileInput input;
  std::byte* to[kWinogradPositions];
  for (int64_t i = 0; i < 6; ++i) {
    input.row[i] = first + smaller(i, last_row) * in.row_stride;
    input.column[i] = smaller(i, last_column) * in.c_pitch;
  }
  for (int p = 0; p < kWinogradPositions; ++p)
    to[p] = v + tiles.input_at[p] + (tiles.ordered[t] - tiles.of_position(p / 6, p % 6).begin) * g.in_channels * 2;
  const bool tall = tiles.is_tall(out, t), wide = tiles.is_wide(out, t);
  const auto transform = tall   ? wide ? transform_tile<true, true> : transform_tile<true, false>
                           : wide ? transform_tile<false, true>
                                : transform_tile<false, false>;
  transform(input, g.in_channels, to);
}

template <int D, int P, int I = 0>
OCTET_INLINE void add_pair(Z (&acc)[P][kVectors], const uint8_t* low, const uint8_t* high, const Z (&weight)[kVectors],
                           int64_t s1, int64_t s3, int64_t s5) {
  const Z b = broadcast<I % 7, D>(I < 7 ? low : high, s1, s3, s5);
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) acc[I][v] = _mm512_dpwssd_epi32(acc[I][v], b, weight[v]);
  if constexpr (I + 1 < P) add_pair<D, P, I + 1>(acc, low, high, weight, s1, s3, s5);
}

// One position of P tiles: adds the products of some chunks to m, or stores them there.
template <Point X, int P>
void multiply(const std::byte* v, int64_t tile_bytes, const std::byte* u, int64_t chunks, bool add, int32_t* m,
              const int8_t* ahead) {
  constexpr int64_t kTileSums = kWinogradPositions * kVectors * kChannelBlock;
  Z acc[P][kVectors];
  if (add) {
#pragma GCC unroll 14
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) acc[p][i] = _mm512_loadu_si512(m + p * kTileSums + i * 16);
  } else {
#pragma GCC unroll 14
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) asm volatile("vpxord %0, %0, %0" : "=v"(acc[p][i]));
  }
  const int64_t s1 = tile_bytes, s3 = 3 * s1, s5 = 5 * s1;
  const auto* low = reinterpret_cast<const uint8_t*>(v);
  // The even pairs of a chunk of V come first, then the odd ones; those of U alternate, because that fills whole pieces
  // of the cache when they are made.
  constexpr int kOdd = kPairs / 2;
  for (; chunks > 0; --chunks, low += 2 * kPairs)
    for (int64_t pair = 0; pair < kPairs; pair += 4, low += 8, u += 4 * kPairBytes, ahead += 64) {
      const uint8_t* high = low + 7 * s1;
      const auto products = [&]<int D>(int at) __attribute__((always_inline)) {
        Z weight[kVectors];
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) weight[i] = weights_at<X>(u + at * kPairBytes + i * 64);
        add_pair<D, P>(acc, low, high, weight, s1, s3, s5);
      };
      products.template operator()<0>(0);
      __builtin_prefetch(ahead, 0, 2);
      products.template operator()<kOdd>(1);
      products.template operator()<1>(2);
      products.template operator()<kOdd + 1>(3);
    }
#pragma GCC unroll 14
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) _mm512_storeu_si512(m + p * kTileSums + i * 16, acc[p][i]);
}

using Multiply = void(const std::byte*, int64_t, const std::byte*, int64_t, bool, int32_t*, const int8_t*);
struct MultiplyTable {
  Multiply* of_tiles[kTilesAtOnce + 1];
};
template <Point X, size_t... P>
constexpr MultiplyTable multiply_table(std::index_sequence<P...>) {
  return {{nullptr, multiply<X, P + 1>...}};
}
template <Point X>
constexpr MultiplyTable kMultiply = multiply_table<X>(std::make_index_sequence<kTilesAtOnce>());
constexpr const MultiplyTable* kMultiplyOfColumn[6] = {&kMultiply<Point::kTap>,      &kMultiply<Point::kOne>,
                                                       &kMultiply<Point::kMinusOne>, &kMultiply<Point::kTwo>,
                                                       &kMultiply<Point::kMinusTwo>, &kMultiply<Point::kTap>};

// Lines to fetch meanwhile, one with every four pairs, and again from the start where there are fewer.
struct Ahead {
  const int8_t *begin, *end, *at;
};

// All positions of the pairs of a slice.
void multiply_slice(const ConvArgs& a, const Tiles& tiles, const Scratch& s, Range chunks, Ahead& ahead) {
  const int64_t tile_bytes = a.geometry.in_channels * 2, some = chunks.end - chunks.begin;
  for (int position = 0; position < kWinogradPositions; ++position) {
    const int y = position / 6, x = position % 6;
    const std::byte* u = s.weights + (y * 3 + (x == 5 ? 2 : 0)) * kTapBytes;
    const Range range = tiles.of_position(y, x);
    const int64_t count = range.end - range.begin, products = (count + kTilesAtOnce - 1) / kTilesAtOnce;
    const std::byte* v = s.input + tiles.input_at[position] + chunks.begin * kChunk * 2;
    for (int64_t p = 0; p < products; ++p) {
      const int64_t first = count * p / products, last = count * (p + 1) / products;
      int32_t* m = s.sums + ((range.begin + first) * kWinogradPositions + position) * kVectors * kChannelBlock;
      kMultiplyOfColumn[x]->of_tiles[last - first](v + first * tile_bytes, tile_bytes, u, some, chunks.begin > 0, m,
                                                   ahead.at);
      ahead.at += some * kPairs / 4 * 64;
      if (ahead.at >= ahead.end) ahead.at = ahead.begin;
    }
  }
}

__attribute__((noinline)) void finish_row(const FinishTile& t, const Epilogue& e, const Constants& c) {
  finish<kVectors>(t, e, c);
}

// Blocks `block` and the next, a row of tiles after the other.
void finish_tiles(const Tiles& tiles, const Scratch& s, const int32_t* starts, const Epilogue& e, const Constants& c,
                  int64_t block) {
  const int64_t row = tiles.across * kWinogradTile;
  for (int64_t t = 0; t < tiles.count; t += tiles.across) {
    for (int64_t i = 0; i < tiles.across; ++i) {
      const bool tall = tiles.is_tall(e.out, t + i), wide = tiles.is_wide(e.out, t + i);
      const auto to_outputs = tall   ? wide ? recover<true, true> : recover<true, false>
                                : wide ? recover<false, true>
                                     : recover<false, false>;
      to_outputs(s.sums + tiles.ordered[t + i] * kWinogradPositions * kVectors * kChannelBlock,
                 starts + block * kChannelBlock, s.outputs + i * kWinogradTile * kVectors * kChannelBlock, row);
    }
    const int64_t y = tiles.row(t) * kWinogradTile;
    for (int64_t i = 0; i < smaller(kWinogradTile, e.out.h - y); ++i)
      finish_row({s.outputs + i * row * kVectors * kChannelBlock, e.out.w, block * kChannelBlock,
                  t / (tiles.across * tiles.down), y + i, 0},
                 e, c);
  }
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const Tiles tiles(a);
  const Scratch s(a.scratch, ScratchPlan(a, tiles));
  const bool whole = rows.begin == 0 && rows.end == a.epilogue.out.n * a.epilogue.out.h;
  if (!whole || !is_exact(a, s)) return conv_avx512_vnni(a, rows, blocks);
  const Kept kept(a);
  Epilogue e = a.epilogue;
  e.multiplier = kept.multipliers;
  e.limits.least_multiplier /= 64, e.limits.greatest_multiplier /= 64;
  const Constants constants = make_constants(e);
  const int64_t chunks = a.geometry.in_channels / kChunk,
                group_bytes = kVectors * 9 * a.geometry.in_channels * kChannelBlock;
  int64_t b = blocks.begin;
  for (; b + kVectors <= blocks.end; b += kVectors) {
    const int8_t* weights = a.weights + b * 9 * a.geometry.in_channels * kChannelBlock;
    const bool last = b + 2 * kVectors > blocks.end;
    const int8_t* const next = last ? reinterpret_cast<const int8_t*>(a.soon.data) : weights + group_bytes;
    const int64_t bytes = last ? a.soon.bytes : group_bytes;
    Ahead ahead{bytes ? next : weights, bytes ? next + bytes : weights, bytes ? next : weights};
    for (int64_t c = 0; c < chunks; c += kSlice) {
      const Range slice{c, smaller(c + kSlice, chunks)};
      transform_slice(a, weights, slice, s.weights);
      if (b == blocks.begin && c == 0)  // by now it is there
        for (int64_t t = 0; t < tiles.count; ++t) transform_tile(a, tiles, t, s.input);
      multiply_slice(a, tiles, s, slice, ahead);
    }
    finish_tiles(tiles, s, kept.starts, e, constants, b);
  }
  conv_avx512_vnni(a, rows, {b, blocks.end});
}

// Always by output channels, in whole products: every weight is transformed once.
ConvShare share(const ConvArgs& a, int part, int parts) {
  const int64_t blocks = padded_channels(a.geometry.out_channels) / kChannelBlock,
                groups = (blocks + kVectors - 1) / kVectors;
  return {{0, a.epilogue.out.n * a.epilogue.out.h},
          {smaller(blocks, groups * part / parts * kVectors), smaller(blocks, groups * (part + 1) / parts * kVectors)},
          {}};
}

// Measured with ResNet-50's layers on one core.
double cost(const ConvArgs& a, int threads) {
  constexpr double kProducts = 59;                          // multiplications of 16-bit integers a cycle
  constexpr double kWeight = 1.2, kInput = 2, kFinish = 8;  // cycles for 32 weights, a channel of a tile, 16 outputs
  const Tiles tiles(a);
  const auto in = static_cast<double>(a.geometry.in_channels);
  const Range blocks = share(a, 0, threads).blocks;
  const double out = static_cast<double>(blocks.end - blocks.begin) * kChannelBlock;
  const double positions = static_cast<double>(tiles.input_bytes) / (2 * in), count = static_cast<double>(tiles.count);
  return (positions * in * out / kProducts + kWinogradPositions * in * out / 32 * kWeight + count * in * kInput +
          count * out * kFinish) /
         3500;
}

}  // namespace

ConvTactic lean_winograd_tactic() {
  return {.name = "lean_winograd",
          .isa = Isa::kAvx512Vnni,
          .applies = applies,
          .scratch_bytes = scratch_bytes,
          .kept_bytes = kept_bytes,
          .run = run,
          .fetches_ahead = true,
          .share = share,
          .cost = cost};
}

}  // namespace octet::kernels

// Winograd convolution (winograd.h) that transforms the weights in every run.
//
// Transformed weights take eight times the memory of the others. With many channels and few tiles they would come from
// beyond the caches each time, so here two blocks of output channels after the other are made of the weights
// themselves, a slice of the input channels at a time, which stays in the L2 cache; the products of the slices add up
// in M. Only one axis of the weights is transformed in memory. The other one takes up to four additions of three taps
// before the products that need them: on AMD's Zen 5 loads and additions beside products cost nothing, but stores do.
#include <utility>

#include "engine/kernels/avx512_vnni/conv/row_runs.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/winograd/lean_tiles.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMostInputBytes = 320 << 10;                     // of V, which shares the L2 cache
constexpr int kTilesAtOnce = 14;                                   // of one product
constexpr int64_t kPairBytes = kVectors * 64;                      // of transformed weights
constexpr int64_t kSlice = 2;                                      // chunks whose weights are transformed at once
constexpr int64_t kTapBytes = kSlice * kPairs * kPairBytes + 128;  // not a multiple of 4096
constexpr int64_t kWeightBytes = 6 * 3 * kTapBytes;

// V: [position][tile of it][channel], 16 bits each.
struct InputPlan {
  int64_t at[kWinogradPositions] = {}, bytes = 0;
  InputPlan(const ConvArgs& a, const Tiles& tiles) {
    for (int p = 0; p < kWinogradPositions; ++p) {
      const Range range = tiles.of_position(p / 6, p % 6);
      at[p] = bytes;
      bytes += (range.end - range.begin) * a.geometry.in_channels * 2 + 128;
    }
    bytes = (bytes + 63) / 64 * 64;
  }
};

struct Scratch {
  std::byte* weights;  // U in one axis: [6][tap][pair][kVectors][16][2], 16 bits each
  std::byte* input;    // V
  TileSums sums;
  static int64_t weight_bytes(const ConvArgs& a) { return larger(kWeightBytes, proof_bytes(a)); }
  static int64_t bytes(const ConvArgs& a, const Tiles& tiles, const InputPlan& plan) {
    return weight_bytes(a) + plan.bytes + TileSums::bytes(tiles);
  }
  Scratch(const ConvArgs& a, const Tiles& tiles, const InputPlan& plan)
      : weights(a.scratch), input(weights + weight_bytes(a)), sums(input + plan.bytes, tiles) {}
};

bool applies(const ConvArgs& a) {
  if (!lean_winograd_applies(a)) return false;
  return InputPlan(a, Tiles(a.epilogue.out)).bytes <= kMostInputBytes;
}

int64_t scratch_bytes(const ConvArgs& a) {
  const Tiles tiles(a.epilogue.out);
  return Scratch::bytes(a, tiles, InputPlan(a, tiles));
}

// u = G g, along one axis.
OCTET_FLAT void transform_tap(const Words& a, const Words& b, const Words& c, Words (&u)[6]) {
  const Words outer = a + c, far = a + (c << 2), twice = b << 1;
  u[0] = a;
  u[1] = outer + b;
  u[2] = outer - b;
  u[3] = far + twice;
  u[4] = far - twice;
  u[5] = c;
}

// Of four input channels and 16 output channels, along the columns only: 6 rows of 3 taps.
template <bool kOdd>
OCTET_INLINE void transform_weights(const int8_t* four, int64_t tap_bytes, std::byte* to) {
#pragma GCC unroll 3
  for (int x = 0; x < 3; ++x) {
    const int8_t* at = four + x * tap_bytes;
    Words u[6];
    transform_tap(signed_pairs<kOdd>(_mm512_loadu_si512(at)),
                  signed_pairs<kOdd>(_mm512_loadu_si512(at + 3 * tap_bytes)),
                  signed_pairs<kOdd>(_mm512_loadu_si512(at + 6 * tap_bytes)), u);
#pragma GCC unroll 6
    for (int y = 0; y < 6; ++y) store_vector(to + (y * 3 + x) * kTapBytes, u[y]);
  }
}

// The other axis of the weights: where it is evaluated. Positions 0 and 5 are the first and the last tap themselves.
enum class Point { kTap, kOne, kMinusOne, kTwo, kMinusTwo };

// From a row of three taps (kTap: from the tap) to one position.
template <Point X>
OCTET_INLINE Z weights_at(const std::byte* taps) {
  const auto a = load_vector<Words>(taps);
  if constexpr (X == Point::kTap) return (Z)a;
  const auto b = load_vector<Words>(taps + kTapBytes), c = load_vector<Words>(taps + 2 * kTapBytes);
  if constexpr (X == Point::kOne) return (Z)(a + b + c);
  if constexpr (X == Point::kMinusOne) return (Z)(a - b + c);
  const Words twice = c + c, inner = X == Point::kTwo ? twice + b : twice - b;
  return (Z)(inner + inner + a);
}

// w: the first of kVectors blocks; chunks: of input channels.
__attribute__((noinline)) void transform_slice(const ConvArgs& a, const int8_t* w, Range chunks, std::byte* u) {
  const int64_t tap_bytes = a.geometry.in_channels * kChannelBlock;
  for (int64_t c = chunks.begin; c < chunks.end; ++c, u += kPairs * kPairBytes)
    for (int64_t four = 0; four < kChunk / 4; ++four)
      for (int v = 0; v < kVectors; ++v) {
        const int8_t* from = w + v * 9 * tap_bytes + (c * kChunk / 4 + four) * 64;
        std::byte* to = u + four * 2 * kPairBytes + v * 64;
        transform_weights<false>(from, tap_bytes, to);
        transform_weights<true>(from, tap_bytes, to + kPairBytes);
      }
}

void transform_input(const ConvArgs& a, const Tiles& tiles, const InputPlan& plan, std::byte* v) {
  for (int64_t t = 0; t < tiles.count; ++t) {
    std::byte* to[kWinogradPositions];
    for (int p = 0; p < kWinogradPositions; ++p)
      to[p] = v + plan.at[p] + (tiles.ordered[t] - tiles.of_position(p / 6, p % 6).begin) * a.geometry.in_channels * 2;
    transform_tile(a, tiles, t, to, kChunk * 2);
  }
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

// All positions of the pairs of a slice.
void multiply_slice(const ConvArgs& a, const Tiles& tiles, const InputPlan& plan, const Scratch& s, Range chunks,
                    bool add, Ahead& ahead) {
  const int64_t tile_bytes = a.geometry.in_channels * 2, some = chunks.end - chunks.begin;
  for (int position = 0; position < kWinogradPositions; ++position) {
    const int y = position / 6, x = position % 6;
    const std::byte* u = s.weights + (y * 3 + (x == 5 ? 2 : 0)) * kTapBytes;
    const Range range = tiles.of_position(y, x);
    const int64_t count = range.end - range.begin, products = (count + kTilesAtOnce - 1) / kTilesAtOnce;
    const std::byte* v = s.input + plan.at[position] + chunks.begin * kChunk * 2;
    for (int64_t p = 0; p < products; ++p) {
      const int64_t first = count * p / products, last = count * (p + 1) / products;
      int32_t* m = s.sums.m + ((range.begin + first) * kWinogradPositions + position) * kVectors * kChannelBlock;
      kMultiplyOfColumn[x]->of_tiles[last - first](v + first * tile_bytes, tile_bytes, u, some, add, m,
                                                   ahead.take(some * kPairs / 4));
    }
  }
}

// See run_slices.
struct Schedule {
  const ConvArgs& a;
  const Tiles& tiles;
  InputPlan plan;
  Scratch scratch;
  bool has_input = false;

  Schedule(const ConvArgs& args, const Tiles& all) : a(args), tiles(all), plan(args, all), scratch(args, all, plan) {}
  static constexpr int64_t kChunksAtOnce = kSlice;
  static constexpr bool kHasThirds = true;
  int32_t* proof_scratch() const { return reinterpret_cast<int32_t*>(scratch.weights); }
  void multiply(int64_t block, Range slice, bool add, Ahead& ahead) {
    transform_slice(a, a.weights + block * 9 * a.geometry.in_channels * kChannelBlock, slice, scratch.weights);
    if (!has_input) transform_input(a, tiles, plan, scratch.input);  // by now it is there
    has_input = true;
    multiply_slice(a, tiles, plan, scratch, slice, add, ahead);
  }
};

// Measured with ResNet-50's layers on one core.
double cost(const ConvArgs& a, int threads) {
  constexpr double kProducts = 59;           // multiplications of 16-bit integers a cycle
  constexpr double kInput = 2, kFinish = 8;  // cycles for a channel of a tile, 16 outputs
  const Tiles tiles(a.epilogue.out);
  const auto in = static_cast<double>(a.geometry.in_channels);
  const Range blocks = lean_winograd_share(a, 0, threads).blocks;
  const double out = static_cast<double>(blocks.end - blocks.begin) * kChannelBlock;
  const double positions = static_cast<double>(InputPlan(a, tiles).bytes) / (2 * in),
               count = static_cast<double>(tiles.count);
  return (positions * in * out / kProducts + kWinogradPositions * in * out / 32 * cpu_model().weight_transform +
          count * in * kInput + count * out * kFinish) /
         cpu_model().cycles_per_us;
}

}  // namespace

ConvTactic lean_winograd_tactic() {
  return {.name = "lean_winograd",
          .isa = Isa::kAvx512Vnni,
          .applies = applies,
          .scratch_bytes = scratch_bytes,
          .kept_bytes = Kept::bytes,
          .run = run_slices<Schedule>,
          .fetches_ahead = true,
          .share = lean_winograd_share,
          .cost = cost};
}

}  // namespace octet::kernels

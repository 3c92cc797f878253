// Winograd convolution (winograd.h) over 7x7 outputs that transforms the weights in registers, in every run, as
// register_winograd.cc does, but by hand between the products of the pair before.
//
// Four tiles take 121 products for a pair of input channels, F(3,3) at two edges, and the transforms that make their
// factors are no fewer instructions: left to the processor they cost a fifth of the time. Here a row of positions of
// all tiles is 22 sums in registers, which leaves room for the taps of the next pair, and the weights are packed so
// that one instruction adds the first and the last tap of a column.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/interleaved_winograd_pairs.h"

namespace octet::kernels {
namespace {

constexpr int kRows = 6;                        // of positions, a pass each
constexpr int64_t kMostInputBytes = 384 << 10;  // of V, which shares the L2 cache
constexpr int64_t kSlice = 4;                   // chunks that all passes take before the next ones
// Lines of later weights that are fetched with every four channels: more than twice as many as there are, since some
// fetches come to nothing where the weights come from main memory.
constexpr int64_t kFetchedLines = 4;

int64_t weight_bytes(const ConvArgs& a) {
  return conv_layout(a.geometry, a.in.c_pitch).weight_bytes;
}

// Places in the prepared weights: [block][four input channels] of kFourBytes, and what is known of them. The last four
// channels are followed by as many bytes that are read and not used.
struct Prepared {
  std::byte* weights;
  Kept kept;
  Prepared(const ConvArgs& a, std::byte* at) : weights(at), kept(a, at + weight_bytes(a)) {}
  static int64_t bytes(const ConvArgs& a) { return weight_bytes(a) + larger(Kept::bytes(a), kFourBytes); }
};

int64_t input_bytes(const ConvArgs& a) {
  return kRows * (a.geometry.in_channels / kChunk) * kPassBytes;
}

struct Scratch {
  std::byte* input;  // V: [row of positions][chunk], kPassBytes each
  TileSums sums;
  Scratch(const ConvArgs& a, const Tiles& tiles) : input(a.scratch), sums(input + input_bytes(a), tiles) {}
};

bool applies(const ConvArgs& a) {
  return lean_winograd_applies(a) && Tiles(a.epilogue.out).thirds && input_bytes(a) <= kMostInputBytes;
}

int64_t prepared_bytes(const ConvArgs& a) {
  return Prepared::bytes(a);
}
int64_t scratch_bytes(const ConvArgs& a) {
  return input_bytes(a) + TileSums::bytes(Tiles(a.epilogue.out));
}

// From taps of four input channels, [16 output channels][4]. Even channels come first in a vector of two each, as V has
// them.
void pack_column(const int8_t* first, const int8_t* middle, const int8_t* last, std::byte* to) {
  const Z low = _mm512_set1_epi16(0xff), a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(middle),
          c = _mm512_loadu_si512(last);
  store_vector(to, _mm512_or_si512(_mm512_and_si512(a, low), _mm512_slli_epi16(c, 8)));
  store_vector(to + kTapsBytes, _mm512_or_si512(_mm512_srli_epi16(a, 8), _mm512_andnot_si512(low, c)));
  store_vector(to + kMiddleAt, _mm512_cvtepi16_epi8(b));
  store_vector(to + kMiddleAt + kMiddleBytes, _mm512_cvtepi16_epi8(_mm512_srli_epi16(b, 8)));
}

void prepare(const ConvArgs& a, std::byte* at) {
  const Prepared p(a, at);
  *p.kept.proof = {};
  prove(a, p.kept, reinterpret_cast<int32_t*>(p.weights));  // their place is free until they are packed
  const int64_t fours = a.geometry.in_channels / 4, blocks = padded_channels(a.geometry.out_channels) / kChannelBlock;
  std::byte* to = p.weights;
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t four = 0; four < fours; ++four)
      for (int64_t x = 0; x < 3; ++x, to += kColumnBytes) {
        const auto tap = [&](int64_t y) { return a.weights + ((b * 9 + y * 3 + x) * fours + four) * 64; };
        pack_column(tap(0), tap(1), tap(2), to);
      }
}

// The first of the tiles, as ordered, that have a row of positions.
int64_t first_tile(Row r) {
  return r == Row::kMinusTwo ? 1 : 0;
}

void transform_input(const ConvArgs& a, const Tiles& tiles, std::byte* v) {
  const int64_t row_bytes = a.geometry.in_channels / kChunk * kPassBytes;
  for (int64_t t = 0; t < tiles.count; ++t) {
    std::byte* to[kWinogradPositions];
    for (int row = 0; row < kRows; ++row) {
      const int64_t place = tiles.ordered[t] - first_tile(Row{row});
      if (place < 0 || place >= row_tiles(Row{row})) continue;
      for (int c = 0; c < 6; ++c) to[row * 6 + kColumns[c]] = v + row * row_bytes + (c * kSlots + place) * kPlaceBytes;
    }
    transform_tile(a, tiles, t, to, kPassBytes);
  }
}

// What a pass multiplies: some chunks of input channels of a block of 16 output channels.
struct Operands {
  const std::byte *v, *next;  // next: that of the next pass, to be fetched
  const std::byte* weights;
  int64_t chunks;
  bool add;            // to m, which is stored otherwise
  int32_t* m;          // of the first tile's position in column 0
  const int8_t* soon;  // kFetchedLines are fetched with every four channels
};

template <Row kRow>
void multiply(const Operands& o) {
  PairProducts<kRow> p;
  constexpr int kSums = PairProducts<kRow>::kSums, kTiles = PairProducts<kRow>::kTiles;
  const auto each = [&](auto&& act) __attribute__((always_inline)) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i)
      act(p.sums[i], o.m + i % kTiles * TileSums::kTile + kColumns[i / kTiles] * TileSums::kPixel);
  };
  if (o.add) {
    each([](Z & sum, const int32_t* m) __attribute__((always_inline)) { sum = _mm512_loadu_si512(m); });
  } else {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) asm volatile("vpxord %0, %0, %0" : "=v"(p.sums[i]));
  }
  const std::byte *v = o.v, *w = o.weights;
  const int8_t* soon = o.soon;
  p.load_first(w);
  for (int64_t left = o.chunks; left > 0; --left, v += kPassBytes - kChunk) {
    const std::byte* next = left > 1 ? v + kPassBytes : o.next;
    for (int64_t four = 0; four < kChunk / 4;
         ++four, v += 4, w += kFourBytes, soon += kFetchedLines * 64, next += 3 * 64) {
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) __builtin_prefetch(next + i * 64, 0, 3);
      p.add_even(v, w);
#pragma GCC unroll 4
      for (int64_t i = 0; i < kFetchedLines; ++i) __builtin_prefetch(soon + i * 64, 0, 2);
      p.add_odd(v, w);
    }
  }
  each([](Z & sum, int32_t * m) __attribute__((always_inline)) { _mm512_storeu_si512(m, sum); });
}

using Multiply = void(const Operands&);
constexpr Multiply* kMultiply[kRows] = {multiply<Row::kFirst>, multiply<Row::kOne>,      multiply<Row::kMinusOne>,
                                        multiply<Row::kTwo>,   multiply<Row::kMinusTwo>, multiply<Row::kLast>};

// All positions of some chunks, for block `block` and the next.
void multiply_slice(const ConvArgs& a, const std::byte* weights, const Scratch& s, int64_t block, Range chunks,
                    bool add, Ahead& ahead) {
  const int64_t in = a.geometry.in_channels, row_bytes = in / kChunk * kPassBytes;
  for (int64_t b = 0; b < kVectors; ++b)
    for (int row = 0; row < kRows; ++row) {
      Operands o;
      o.v = s.input + row * row_bytes + chunks.begin * kPassBytes;
      o.next = row + 1 < kRows ? o.v + row_bytes : s.input + chunks.begin * kPassBytes;
      o.weights = weights + ((block + b) * in + chunks.begin * kChunk) / 4 * kFourBytes;
      o.chunks = chunks.end - chunks.begin;
      o.add = add;
      o.m = s.sums.m + first_tile(Row{row}) * TileSums::kTile + row * 6 * TileSums::kPixel + b * kChannelBlock;
      o.soon = ahead.take(o.chunks * kChunk / 4 * kFetchedLines);
      kMultiply[row](o);
    }
}

void run(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const bool whole = rows.begin == 0 && rows.end == a.epilogue.out.h;
  if (!whole) return conv_avx512_vnni(a, rows, blocks);
  const Prepared p(a, const_cast<std::byte*>(a.prepared));
  const Tiles tiles(a.epilogue.out);
  const Scratch s(a, tiles);
  const TileFinish finish(a, tiles, s.sums, p.kept);
  const int64_t chunks = a.geometry.in_channels / kChunk, parts = p.kept.proof->parts;
  int64_t b = blocks.begin;
  if (b + kVectors <= blocks.end) transform_input(a, tiles, s.input);
  for (; b + kVectors <= blocks.end; b += kVectors) {
    Ahead ahead(a, reinterpret_cast<const int8_t*>(p.weights), b, blocks.end);
    for (int64_t i = 0; i < parts; ++i) {
      const Range part = winograd_part(chunks, parts, i);
      for (int64_t c = part.begin; c < part.end; c += kSlice)
        multiply_slice(a, p.weights, s, b, {c, smaller(c + kSlice, part.end)}, c > part.begin, ahead);
      finish(b, i);
    }
  }
  conv_avx512_vnni(a, rows, {b, blocks.end});
}

// Measured with ResNet's layers on Zen 4. Instructions beside the products of a pair are free there, not on other CPUs.
double cost(const ConvArgs& a, int threads) {
  const bool shared = !__builtin_cpu_is("amd");
  const double pair = shared ? 260 : 143;    // cycles of 16 outputs
  constexpr double kInput = 2, kFinish = 8;  // cycles for a channel of a tile, 16 outputs
  const auto in = static_cast<double>(a.geometry.in_channels);
  const Range blocks = lean_winograd_share(a, 0, threads).blocks;
  const auto out_blocks = static_cast<double>(blocks.end - blocks.begin);
  // See register_winograd.cc.
  const double cycles_per_microsecond = shared ? 3500 : 5600;
  return (pair * in / 2 * out_blocks + kSlots * in * kInput + kSlots * out_blocks * kChannelBlock * kFinish) /
         cycles_per_microsecond;
}

}  // namespace

ConvTactic interleaved_winograd_tactic() {
  return {.name = "interleaved_winograd",
          .isa = Isa::kAvx512Vnni,
          .applies = applies,
          .prepared_bytes = prepared_bytes,
          .prepare = prepare,
          .prepared_by_blocks = true,
          .scratch_bytes = scratch_bytes,
          .run = run,
          .fetches_ahead = true,
          .share = lean_winograd_share,
          .cost = cost};
}

}  // namespace octet::kernels

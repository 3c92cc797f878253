// Winograd convolution (winograd.h) that transforms the weights in registers, in every run.
//
// Where additions, shifts and loads cost nothing beside products (AMD's Zen 4 and Zen 5), weights need no memory in
// transformed form: a pass adds up to 24 sums, of a row of positions for some tiles, and with every pair of input
// channels the 24 products hide the 10 to 32 instructions that make their factors of the taps. Where a row needs
// several passes, the first one keeps the taps transformed along the columns of the kernel, an eighth of what all
// transformed weights would be, for the others. So it suits the fewest tiles: four are enough.
#include <utility>

#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/winograd/lean_tiles.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMostInputBytes = 384 << 10;  // of V, which shares the L2 cache
constexpr int64_t kSlice = 4;                   // chunks that all passes take before the next ones
constexpr int kMostSums = 24;
constexpr int64_t kPlaceBytes = kChunk * 2;               // of V: a chunk of a position of a tile
constexpr int64_t kPassBytes = kMostSums * kPlaceBytes;   // a chunk of a pass
constexpr int64_t kLineBytes = kSlice * kPairs * 3 * 64;  // of a slice

// The positions of a row of a tile that are multiplied together.
// kTwoOutputs: those that F(2,3) needs too. kOthers: those that only F(4,3) needs.
enum class Columns { kAll, kTwoOutputs, kOthers };
constexpr int kColumns[3][6] = {{0, 1, 2, 3, 4, 5}, {0, 1, 2, 5}, {3, 4}};
constexpr int column_count(Columns c) {
  return c == Columns::kTwoOutputs ? 4 : c == Columns::kOthers ? 2 : 6;
}
constexpr int most_tiles(Columns c) {
  return kMostSums / column_count(c);
}

// Where a row of positions evaluates the weights along the columns of the kernel: at the first or the last tap, or with
// three taps. Where several passes follow each other, the first one keeps what it makes of the taps for the others.
enum class Line { kTap, kOne, kMinusOne, kTwo, kMinusTwo, kKept };
constexpr Line kLines[6] = {Line::kTap, Line::kOne, Line::kMinusOne, Line::kTwo, Line::kMinusTwo, Line::kTap};

// One row of positions of some tiles, which are counted as ordered.
struct Pass {
  int row = 0;
  Line line = Line::kTap;
  bool keeps = false;
  Columns columns = Columns::kAll;
  int64_t first = 0, count = 0;
};
struct Passes {
  static constexpr int64_t kMost = 6 * ((kMostTiles + 5) / 6 + (kMostTiles + 11) / 12);
  Pass pass[kMost];
  int64_t count = 0;

  explicit Passes(const Tiles& tiles) {
    for (int row = 0; row < 6; ++row) {
      const int64_t before = count;
      if (tiles.all_whole()) {
        add(row, Columns::kAll, tiles.of_position(row, 0));
      } else {
        add(row, Columns::kTwoOutputs, tiles.of_position(row, 0));
        add(row, Columns::kOthers, tiles.of_position(row, 3));
      }
      if (kLines[row] == Line::kTap || count == before + 1) continue;
      pass[before].keeps = true;
      for (int64_t i = before + 1; i < count; ++i) pass[i].line = Line::kKept;
    }
  }

 private:
  void add(int row, Columns columns, Range tiles) {
    const int64_t all = tiles.end - tiles.begin, most = most_tiles(columns), passes = (all + most - 1) / most;
    for (int64_t p = 0; p < passes; ++p) {
      const int64_t first = all * p / passes;
      pass[count++] = {row, kLines[row], false, columns, tiles.begin + first, all * (p + 1) / passes - first};
    }
  }
};

int64_t input_bytes(const ConvArgs& a, const Passes& passes) {
  return passes.count * (a.geometry.in_channels / kChunk) * kPassBytes;
}

struct Scratch {
  std::byte* lines;  // Line::kKept: [pair][column of taps][16 output channels][2], 16 bits each
  std::byte* input;  // V: [pass][chunk][position][tile of the pass][channel], 16 bits each
  TileSums sums;
  static int64_t input_size(const ConvArgs& a, const Passes& passes) {
    return larger(input_bytes(a, passes), proof_bytes(a));
  }
  Scratch(const ConvArgs& a, const Tiles& tiles, const Passes& passes)
      : lines(a.scratch), input(lines + kLineBytes), sums(input + input_size(a, passes), tiles) {}
};

constexpr bool kThirds = false;  // 7x7 takes four whole tiles: products beside the transforms cost nothing
Tiles tiles_of(const ConvArgs& a) {
  return Tiles(a.epilogue.out, kThirds);
}

bool applies(const ConvArgs& a) {
  if (!lean_winograd_applies(a)) return false;
  return input_bytes(a, Passes(tiles_of(a))) <= kMostInputBytes;
}

int64_t scratch_bytes(const ConvArgs& a) {
  const Tiles tiles = tiles_of(a);
  return kLineBytes + Scratch::input_size(a, Passes(tiles)) + TileSums::bytes(tiles);
}

void transform_input(const ConvArgs& a, const Tiles& tiles, const Passes& passes, std::byte* v) {
  const int64_t pass_bytes = a.geometry.in_channels / kChunk * kPassBytes;
  for (int64_t t = 0; t < tiles.count; ++t) {
    std::byte* to[kWinogradPositions];
    for (int64_t i = 0; i < passes.count; ++i) {
      const Pass& p = passes.pass[i];
      const int64_t place = tiles.ordered[t] - p.first;
      if (place < 0 || place >= p.count) continue;
      for (int c = 0; c < column_count(p.columns); ++c)
        to[p.row * 6 + kColumns[static_cast<int>(p.columns)][c]] =
            v + i * pass_bytes + (c * most_tiles(p.columns) + place) * kPlaceBytes;
    }
    transform_tile(a, tiles, t, to, kPassBytes);
  }
}

// A load that is made where it stands, and once.
OCTET_INLINE Z load_by_hand(const void* from) {
  Z v;
  asm volatile("vmovdqu64 %1, %0" : "=v"(v) : "m"(*static_cast<const int8_t(*)[64]>(from)));
  return v;
}

// Four input channels of a tap, and of those one and two rows of taps on.
struct Taps {
  Z a, b, c;
};
template <Line Y>
OCTET_INLINE Taps load_taps(const int8_t* w, int64_t row) {
  Taps t;
  t.a = load_by_hand(w);
  if constexpr (Y != Line::kTap) t.b = load_by_hand(w + row), t.c = load_by_hand(w + 2 * row);
  return t;
}
template <bool kOdd, Line Y>
OCTET_INLINE Words line_of(const Taps& t) {
  const Words first = signed_pairs<kOdd>(t.a);
  if constexpr (Y == Line::kTap) return first;
  if constexpr (Y == Line::kTwo || Y == Line::kMinusTwo) {
    const Words outer = first + scaled_signed_pairs<kOdd, 2>(t.c), twice = scaled_signed_pairs<kOdd, 1>(t.b);
    return Y == Line::kTwo ? outer + twice : outer - twice;
  }
  const Words outer = first + signed_pairs<kOdd>(t.c), middle = signed_pairs<kOdd>(t.b);
  return Y == Line::kOne ? outer + middle : outer - middle;
}

// Position C of the pass, for P tiles: adds their products to the sums.
template <int C, int kStride, bool kOdd, int P, int N, int T = 0>
OCTET_INLINE void add_tiles(Z (&acc)[N], const std::byte* v, const Words& weights) {
  asm volatile("vpdpwssd %c2(%1)%{1to16%}, %3, %0"
               : "+v"(acc[C * P + T])
               : "r"(v), "i"((C * kStride + T) * kPlaceBytes + kOdd * 64), "v"((Z)weights));
  if constexpr (T + 1 < P) add_tiles<C, kStride, kOdd, P, N, T + 1>(acc, v, weights);
}

// A pair of input channels. a, b, c: the weights, transformed along the columns.
template <Columns kWhich, bool kOdd, int P, int N>
OCTET_INLINE void add_pair(Z (&acc)[N], const std::byte* v, const Words& a, const Words& b, const Words& c) {
  constexpr int kStride = most_tiles(kWhich), kLast = column_count(kWhich) - 1;
  constexpr bool kFirst = kWhich != Columns::kOthers;
  if constexpr (kFirst) {
    add_tiles<0, kStride, kOdd, P>(acc, v, a);
    const Words outer = a + c;
    add_tiles<1, kStride, kOdd, P>(acc, v, outer + b);
    add_tiles<2, kStride, kOdd, P>(acc, v, outer - b);
  }
  if constexpr (kWhich != Columns::kTwoOutputs) {
    const Words far = a + (c << 2), twice = b << 1;
    add_tiles<kFirst ? 3 : 0, kStride, kOdd, P>(acc, v, far + twice);
    add_tiles<kFirst ? 4 : 1, kStride, kOdd, P>(acc, v, far - twice);
  }
  if constexpr (kFirst) add_tiles<kLast, kStride, kOdd, P>(acc, v, c);
}

// What a pass multiplies: some chunks of input channels of a block of 16 output channels.
struct Operands {
  const std::byte *v, *next;  // next: that of the next pass, to be fetched
  const int8_t* weights;      // first taps of the line
  int64_t tap_bytes, chunks;
  std::byte* lines;
  bool add;            // to m, which is stored otherwise
  int32_t* m;          // of the first tile's position in column 0
  int64_t tiles;       // up to P; others are not stored
  const int8_t* soon;  // two lines are fetched with every four channels
};

constexpr int kSumsBesideLines = 22;  // that leave registers for the lines of two pairs

// The two pairs of four input channels, from where they are to the sums. Weights are loaded once for both where it can
// be: loads are what another thread on the core takes away first.
template <Columns kWhich, Line Y, bool kKeeps, int P, int N>
OCTET_INLINE void take_four(Z (&acc)[N], const std::byte* v, const int8_t* w, int64_t tap, std::byte* lines) {
  constexpr bool kFewSums = N <= kSumsBesideLines, kBothFit = Y == Line::kTap || kFewSums;
  Words even[3], odd[3];
  std::byte* const odd_lines = lines + 3 * 64;
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    if constexpr (Y == Line::kKept) {
      even[i] = load_vector<Words>(lines + i * 64);
    } else {
      const Taps t = load_taps<Y>(w + i * tap, 3 * tap);
      even[i] = line_of<false, Y>(t);
      if constexpr (kBothFit || kKeeps) odd[i] = line_of<true, Y>(t);
      if constexpr (kKeeps) store_vector(lines + i * 64, even[i]), store_vector(odd_lines + i * 64, odd[i]);
      if constexpr (kFewSums) asm("" : "+v"(even[i]), "+v"(odd[i]));
    }
  }
  add_pair<kWhich, false, P>(acc, v, even[0], even[1], even[2]);
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    if constexpr (Y == Line::kKept || (kKeeps && !kBothFit)) {
      odd[i] = (Words)load_by_hand(odd_lines + i * 64);
    } else if constexpr (!kBothFit) {
      odd[i] = line_of<true, Y>(load_taps<Y>(w + i * tap, 3 * tap));
    }
  }
  add_pair<kWhich, true, P>(acc, v, odd[0], odd[1], odd[2]);
}

template <Columns kWhich, Line Y, bool kKeeps, int P>
void multiply(const Operands& o) {
  constexpr int kCount = column_count(kWhich), kSums = kCount * P;
  Z acc[kSums];
  const auto each = [&](auto&& act) __attribute__((always_inline)) {
#pragma GCC unroll 12
    for (int t = 0; t < P; ++t) {
      if (t >= o.tiles) break;
#pragma GCC unroll 6
      for (int c = 0; c < kCount; ++c)
        act(acc[c * P + t], o.m + t * TileSums::kTile + kColumns[static_cast<int>(kWhich)][c] * TileSums::kPixel);
    }
  };
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) asm volatile("vpxord %0, %0, %0" : "=v"(acc[i]));
  if (o.add) each([](Z & sum, const int32_t* m) __attribute__((always_inline)) { sum = _mm512_loadu_si512(m); });
  const int64_t tap = o.tap_bytes;
  std::byte* lines = o.lines;
  const std::byte* v = o.v;
  const int8_t *w = o.weights, *soon = o.soon;
  for (int64_t left = o.chunks; left > 0; --left, v += kPassBytes - kChunk) {
    const std::byte* next = left > 1 ? v + kPassBytes : o.next;
    for (int64_t four = 0; four < kChunk / 4; ++four, v += 4, w += 64, lines += 6 * 64, soon += 128, next += 3 * 64) {
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) __builtin_prefetch(next + i * 64, 0, 3);
      take_four<kWhich, Y, kKeeps, P>(acc, v, w, tap, lines);
      __builtin_prefetch(soon, 0, 2);
      __builtin_prefetch(soon + 64, 0, 2);
    }
  }
  each([](Z & sum, int32_t * m) __attribute__((always_inline)) { _mm512_storeu_si512(m, sum); });
}

using Multiply = void(const Operands&);
template <Columns kWhich, Line Y, bool kKeeps = false>
Multiply* multiply_of(int64_t tiles) {
  constexpr int kMost = most_tiles(kWhich);
  constexpr int kFewer = kMost == 12 ? 9 : kMost - 1;
  return tiles > kFewer ? multiply<kWhich, Y, kKeeps, kMost> : multiply<kWhich, Y, kKeeps, kFewer>;
}
// The first pass of a row.
template <Line Y>
Multiply* multiply_of(const Pass& p) {
  if (p.columns == Columns::kAll)
    return p.keeps ? multiply_of<Columns::kAll, Y, true>(p.count) : multiply_of<Columns::kAll, Y>(p.count);
  return multiply_of<Columns::kTwoOutputs, Y, true>(p.count);
}
template <Line Y>
Multiply* multiply_of_any(const Pass& p) {
  return p.columns == Columns::kAll          ? multiply_of<Columns::kAll, Y>(p.count)
         : p.columns == Columns::kTwoOutputs ? multiply_of<Columns::kTwoOutputs, Y>(p.count)
                                             : multiply_of<Columns::kOthers, Y>(p.count);
}
Multiply* multiply_of(const Pass& p) {
  switch (p.line) {
    case Line::kTap:
      return multiply_of_any<Line::kTap>(p);
    case Line::kOne:
      return multiply_of<Line::kOne>(p);
    case Line::kMinusOne:
      return multiply_of<Line::kMinusOne>(p);
    case Line::kTwo:
      return multiply_of<Line::kTwo>(p);
    case Line::kMinusTwo:
      return multiply_of<Line::kMinusTwo>(p);
    case Line::kKept:
      return multiply_of_any<Line::kKept>(p);
  }
  return nullptr;
}

// All positions of some chunks, for block `block` and the next.
void multiply_slice(const ConvArgs& a, const Passes& passes, const Scratch& s, int64_t block, Range chunks, bool add,
                    Ahead& ahead) {
  const int64_t all_chunks = a.geometry.in_channels / kChunk, tap_bytes = a.geometry.in_channels * kChannelBlock;
  for (int64_t b = 0; b < kVectors; ++b) {
    const int8_t* weights = a.weights + (block + b) * 9 * tap_bytes + chunks.begin * kChunk * kChannelBlock;
    for (int64_t i = 0; i < passes.count; ++i) {
      const Pass& p = passes.pass[i];
      Operands o;
      o.v = s.input + (i * all_chunks + chunks.begin) * kPassBytes;
      o.next = i + 1 < passes.count ? o.v + all_chunks * kPassBytes : s.input + chunks.begin * kPassBytes;
      o.weights = weights + (p.row == 5 ? 6 * tap_bytes : 0);
      o.tap_bytes = tap_bytes, o.chunks = chunks.end - chunks.begin;
      o.lines = s.lines;
      o.add = add;
      o.m = s.sums.m + p.first * TileSums::kTile + p.row * 6 * TileSums::kPixel + b * kChannelBlock;
      o.tiles = p.count;
      o.soon = ahead.take(o.chunks * kChunk / 4 * 2);
      multiply_of(p)(o);
    }
  }
}

// See run_slices.
struct Schedule {
  const ConvArgs& a;
  const Tiles& tiles;
  Passes passes;
  Scratch scratch;
  bool has_input = false;

  Schedule(const ConvArgs& args, const Tiles& all) : a(args), tiles(all), passes(all), scratch(args, all, passes) {}
  static constexpr int64_t kChunksAtOnce = kSlice;
  static constexpr bool kHasThirds = kThirds;
  int32_t* proof_scratch() const { return reinterpret_cast<int32_t*>(scratch.input); }
  void multiply(int64_t block, Range slice, bool add, Ahead& ahead) {
    if (!has_input) transform_input(a, tiles, passes, scratch.input);
    has_input = true;
    multiply_slice(a, passes, scratch, block, slice, add, ahead);
  }
};

// Measured with ResNet's layers on Zen 4. Instructions beside the products of a pair are free there, not on other CPUs.
double cost(const ConvArgs& a, int threads) {
  constexpr double kInput = 2, kFinish = 8;  // cycles for a channel of a tile, 16 outputs
  const CpuModel& cpu = cpu_model();
  const Tiles tiles = tiles_of(a);
  const Passes passes(tiles);
  const auto in = static_cast<double>(a.geometry.in_channels), count = static_cast<double>(tiles.count);
  const Range blocks = lean_winograd_share(a, 0, threads).blocks;
  const auto out_blocks = static_cast<double>(blocks.end - blocks.begin);
  double cycles = 0;
  for (int64_t i = 0; i < passes.count; ++i) {
    const Pass& p = passes.pass[i];
    const double products = static_cast<double>(column_count(p.columns) * p.count);
    const double beside = p.line == Line::kKept ? 6 : p.line == Line::kTap ? 10 : p.row <= 2 ? 26 : 29;
    cycles += 1 + (cpu.shared_ports ? products + beside : products > beside ? products : beside);
  }
  return (cycles * in / 2 * out_blocks + count * in * kInput + count * out_blocks * kChannelBlock * kFinish) /
         cpu.cycles_per_us_of_zen4;
}

}  // namespace

ConvTactic register_winograd_tactic() {
  return {.name = "register_winograd",
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

// Winograd convolution F(3x3,4x4) for first layers: images of three channels, 7x7 or 8x8 kernels with stride 2.
//
// The pixels of even and of odd rows and columns are four images (phases) of which every output adds up a convolution
// with 4x4 taps and stride 1: twelve channels of it. A tile of 3x3 outputs reads 6x6 pixels of each phase and takes 36
// products for each pair of channels, 24 dot products of 16 bits for an output where the direct sum takes 37 of 8 bits.
// With seven taps the odd phases have three along an axis and need no products at its last position: 21 are left.
//
// The points are those of winograd.h, so BT and the factor 576 are the same, and so is the proof; with
//
//       |  6  0  0  0 |
//       | -4 -4 -4 -4 |        | 1  1  1  1  1  0 |
//   G = | -4  4 -4  4 |   AT = | 0  1 -1  2 -2  0 |
//       |  1  2  4  8 |        | 0  1  1  4  4  4 |
//       |  1 -2  4 -8 |
//       |  0  0  0  6 |
//
// transformed weights lie in [-32768, 32640]: 16 bits. (The largest factors are 16 of 16 weights: all of them added up
// are at most 16 * 127, at least 16 * -128; with other signs at most 8 * 127 + 8 * 128.)
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/winograd/image_tiles.h"
#include "engine/kernels/cpu_model.h"
#include "engine/kernels/epilogue_shortcuts.h"
#include "engine/kernels/winograd/winograd.h"

namespace octet::kernels {
namespace {

using Words = Vectors64::Words;

constexpr int64_t kTaps = 4;        // of a phase, along each axis
constexpr int64_t kPixelBytes = 8;  // of a phase: two neighboring pixels of the image
constexpr int64_t kBlockWeightBytes = 6 * kPassWeightBytes;
constexpr int64_t kTileRows = 2 * 6;  // of the image, that a tile reads
constexpr int64_t kMostTiles = 40;    // whose V is kept
constexpr int64_t kColumnsOnce = 4;   // of a phase
constexpr int64_t kClaimedAhead = 2;  // passes
constexpr int64_t kLineBlocks = 64 / kChannelBlock;

// Places in the prepared weights: whether they can be used, as the proof of winograd.h says, and
// [block][row of positions][pair][column of positions][16 output channels][2], 16 bits each.
struct Prepared {
  int32_t* proved;
  std::byte* weights;
  int32_t* starts;     // 64 times acc_init
  float* multipliers;  // a 64th
  int32_t* sums;       // as winograd_at_once() takes them
  static constexpr int64_t kWeightsAt = 64;
  Prepared(const ConvArgs& a, std::byte* at) {
    const int64_t channels = padded_channels(a.geometry.out_channels);
    proved = reinterpret_cast<int32_t*>(at);
    weights = at + kWeightsAt;
    starts = reinterpret_cast<int32_t*>(weights + channels / kChannelBlock * kBlockWeightBytes);
    multipliers = reinterpret_cast<float*>(starts + channels);
    sums = reinterpret_cast<int32_t*>(multipliers + channels);
  }
  static int64_t bytes(const ConvArgs& a) {
    const int64_t channels = padded_channels(a.geometry.out_channels);
    return kWeightsAt + channels / kChannelBlock * kBlockWeightBytes + channels * 4 * 4;
  }
};

struct Scratch {
  std::byte* v;         // of kMostTiles
  std::byte* rows;      // of a row of these tiles: [column of a phase][two rows of positions][row phase][row]
  int32_t* m[2];        // of four tiles, now and before
  BlockFinish* finish;  // of every block
  uint8_t* trash;       // [channel]: where tiles go that are not there
  static constexpr int64_t kV = kMostTiles * kTileBytes, kM = kSlots * kTileStep * 4;
  static constexpr int64_t kRows = (kMostTiles * kTileOutputs + 2 * kColumnsOnce) * kPositionColumnBytes;
  Scratch(const ConvArgs& a, std::byte* at)
      : v(at),
        rows(v + kV),
        m{reinterpret_cast<int32_t*>(rows + kRows), reinterpret_cast<int32_t*>(rows + kRows + kM)},
        finish(reinterpret_cast<BlockFinish*>(rows + kRows + 2 * kM)),
        trash(reinterpret_cast<uint8_t*>(finish + padded_channels(a.geometry.out_channels) / kChannelBlock)) {}
  static int64_t bytes(const ConvArgs& a) {
    const int64_t channels = padded_channels(a.geometry.out_channels);
    return kV + kRows + 2 * kM + channels / kChannelBlock * static_cast<int64_t>(sizeof(BlockFinish)) + channels;
  }
};

bool applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const auto seven_or_eight = [](int64_t k) { return k == 7 || k == 8; };
  return g.in_channels == 3 && a.in.c_pitch == 4 && g.groups == 1 && seven_or_eight(g.kernel_h) &&
         seven_or_eight(g.kernel_w) && g.stride_h == 2 && g.stride_w == 2 && g.dilation_h == 1 && g.dilation_w == 1 &&
         e.out.data != nullptr && e.residual.data == nullptr && e.table == nullptr && !e.function &&
         sums_are_bounded(e) && e.out.c_pitch >= kChannelBlock;
}

bool has_seven_taps(const ConvGeometry& g) {
  return g.kernel_h == 7 && g.kernel_w == 7;
}

int64_t prepared_bytes(const ConvArgs& a) {
  return Prepared::bytes(a);
}
int64_t scratch_bytes(const ConvArgs& a) {
  return Scratch::bytes(a);
}

// A channel of a phase of an output channel: 4x4 taps, to its 36 positions.
void transform_weights(const int32_t (&g)[kTaps][kTaps], int32_t (&u)[6][6]) {
  static constexpr int32_t kG[6][kTaps] = {{6, 0, 0, 0}, {-4, -4, -4, -4}, {-4, 4, -4, 4},
                                           {1, 2, 4, 8}, {1, -2, 4, -8},   {0, 0, 0, 6}};
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 6; ++x) {
      u[y][x] = 0;
      for (int i = 0; i < kTaps; ++i)
        for (int j = 0; j < kTaps; ++j) u[y][x] += kG[y][i] * kG[x][j] * g[i][j];
    }
}

void prepare(const ConvArgs& a, std::byte* at) {
  const ConvGeometry& g = a.geometry;
  const Prepared p(a, at);
  const int64_t channels = padded_channels(g.out_channels);
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t lane = c % kChannelBlock;
    const int8_t* const from = a.weights + c / kChannelBlock * g.kernel_h * g.kernel_w * 64 + lane * 4;
    int32_t* const sums = p.sums + c / kChannelBlock * 2 * kChannelBlock + lane;
    sums[0] = sums[kChannelBlock] = 0;
    for (int64_t word = 0; word < 2 * 6; ++word) {
      const int64_t row = word / 6, column = word % 6 / 3, channel = word % 3;
      int32_t taps[kTaps][kTaps] = {}, u[6][6];
      for (int64_t y = row; y < g.kernel_h; y += 2)
        for (int64_t x = column; x < g.kernel_w; x += 2) {
          const int32_t w = from[(y * g.kernel_w + x) * 64 + channel];
          taps[y / 2][x / 2] = w;
          sums[w > 0 ? 0 : kChannelBlock] += w > 0 ? w : -w;
        }
      transform_weights(taps, u);
      auto* const to = reinterpret_cast<int16_t*>(p.weights + c / kChannelBlock * kBlockWeightBytes);
      for (int64_t y = 0; y < 6; ++y)
        for (int64_t x = 0; x < 6; ++x)
          to[((y * kPairs + word / 2) * 6 + x) * 32 + lane * 2 + word % 2] = static_cast<int16_t>(u[y][x]);
    }
  }
  WinogradPlan plan;
  plan.chunks = 1;
  *p.proved = winograd_at_once(a, plan, p.sums, p.starts, p.multipliers);
  for (int64_t c = 0; c < channels; ++c) p.starts[c] = static_cast<int32_t>(static_cast<uint32_t>(a.acc_init[c]) * 64);
}

// Four neighboring columns of a row of both column phases, as words: [column][channels of two pixels, zeros].
OCTET_INLINE Words four_columns(const uint8_t* codes) {
  const Z words = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1));
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  return (Words)_mm512_shuffle_epi8(_mm512_cvtepu8_epi16(bytes), words);
}

// The rows of positions of neighboring columns, at least `count`. rows: those of the image, from the first column on.
// Up to 44 bytes are read beyond what outputs need, which is within kReadSlack: two outputs that are not there, and
// columns up to a vector of them.
__attribute__((noinline)) void transform_rows(const uint8_t* const (&rows)[kTileRows], int64_t count, std::byte* to) {
  for (int64_t x = 0; x < count; x += kColumnsOnce, to += kColumnsOnce * kPositionColumnBytes) {
    Words v[2][6];
#pragma GCC unroll 2
    for (int phase = 0; phase < 2; ++phase) {
      Words d[6];
#pragma GCC unroll 6
      for (int y = 0; y < 6; ++y) d[y] = four_columns(rows[2 * y + phase] + x * kPixelBytes);
      transform_input(d, v[phase]);
    }
    // From [column] of four vectors to four vectors of a column.
#pragma GCC unroll 3
    for (int y = 0; y < 3; ++y) {
      const Z a = (Z)v[0][2 * y], b = (Z)v[0][2 * y + 1], c = (Z)v[1][2 * y], d = (Z)v[1][2 * y + 1];
      const Z ab = _mm512_shuffle_i32x4(a, b, 0x44), cd = _mm512_shuffle_i32x4(c, d, 0x44);
      const Z ab2 = _mm512_shuffle_i32x4(a, b, 0xee), cd2 = _mm512_shuffle_i32x4(c, d, 0xee);
      std::byte* const at = to + y * 2 * kPhaseBytes;
      store_vector(at, _mm512_shuffle_i32x4(ab, cd, 0x88));
      store_vector(at + kPositionColumnBytes, _mm512_shuffle_i32x4(ab, cd, 0xdd));
      store_vector(at + 2 * kPositionColumnBytes, _mm512_shuffle_i32x4(ab2, cd2, 0x88));
      store_vector(at + 3 * kPositionColumnBytes, _mm512_shuffle_i32x4(ab2, cd2, 0xdd));
    }
  }
}

// V of neighboring tiles.
__attribute__((noinline)) void transform_columns(const std::byte* rows, int64_t tiles, std::byte* v) {
  for (int64_t t = 0; t < tiles; ++t, rows += kTileOutputs * kPositionColumnBytes, v += kTileBytes)
#pragma GCC unroll 3
    for (int64_t y = 0; y < 3; ++y) {
      Words d[6], columns[6];
#pragma GCC unroll 6
      for (int64_t x = 0; x < 6; ++x) d[x] = load_vector<Words>(rows + x * kPositionColumnBytes + y * 2 * kPhaseBytes);
      transform_input(d, columns);
#pragma GCC unroll 6
      for (int64_t x = 0; x < 6; ++x) store_vector(v + x * kPositionColumnBytes + y * 2 * kPhaseBytes, columns[x]);
    }
}

// The tiles of some rows of one image.
class Tiles {
 public:
  Tiles(const ConvArgs& a, int64_t image, Range rows) : a_(a), image_(image), rows_(rows) {
    const QTensor& out = a.epilogue.out;
    across_ = (out.w + kTileOutputs - 1) / kTileOutputs;
    count_ = (rows.end - rows.begin + kTileOutputs - 1) / kTileOutputs * across_;
  }
  int64_t count() const { return count_; }

  // V of the tiles [tiles.begin, tiles.end), at most kMostTiles.
  void transform(Range tiles, const Scratch& s) const {
    const QTensor& in = a_.in;
    const ConvGeometry& g = a_.geometry;
    // Of the image, pads included. Rows beyond those of the last outputs need not be in memory.
    const int64_t last = 2 * (rows_.end - 1) + g.kernel_h - 1;
    for (int64_t t = tiles.begin; t < tiles.end;) {
      const int64_t end = smaller(tiles.end, (t / across_ + 1) * across_), y = 2 * row(t);
      const int64_t column = (t % across_ * kTileOutputs) * kPixelBytes - g.pad_left * in.c_pitch;
      const uint8_t* rows[kTileRows];
      for (int64_t i = 0; i < kTileRows; ++i)
        rows[i] = in.data + image_ * in.image_stride + (smaller(y + i, last) - g.pad_top) * in.row_stride + column;
      transform_rows(rows, (end - t) * kTileOutputs + kTaps - 1, s.rows);
      transform_columns(s.rows, end - t, s.v + (t - tiles.begin) * kTileBytes);
      t = end;
    }
  }

  // The columns of outputs of four tiles from tile t on, of which those from `end` on are not there.
  void columns(int64_t t, int64_t end, uint8_t* trash, Column* column) const {
    const QTensor& out = a_.epilogue.out;
    for (int64_t i = 0; i < kSlots; ++i, ++t) {
      const int64_t y = row(t), x = t % across_ * kTileOutputs;
      uint8_t* const first = out.data + image_ * out.image_stride + y * out.row_stride + x * out.c_pitch;
      // As with rows (Column), a column that is not there comes before the last one that is.
      for (int64_t c = kTileOutputs - 1; c >= 0; --c, ++column) {
        column->m = (i * kTileStep + c * kColumnStep) * 4;
        if (t >= end) {
          column->out = trash, column->second = column->third = 0;
          continue;
        }
        column->out = first + smaller(c, out.w - 1 - x) * out.c_pitch;
        column->second = smaller(1, rows_.end - 1 - y) * out.row_stride;
        column->third = smaller(2, rows_.end - 1 - y) * out.row_stride;
      }
    }
  }

 private:
  const ConvArgs& a_;
  const int64_t image_;
  const Range rows_;
  int64_t across_ = 0, count_ = 0;

  int64_t row(int64_t t) const { return rows_.begin + t / across_ * kTileOutputs; }
};

BlockFinish* load_blocks(const ConvArgs& a, const Prepared& p, Range blocks, BlockFinish* finish) {
  const Epilogue& e = a.epilogue;
  for (int64_t b = blocks.begin; b < blocks.end; ++b) {
    BlockFinish& f = finish[b];
    _mm512_store_si512(f.start, _mm512_loadu_si512(p.starts + b * kChannelBlock));
    _mm512_store_ps(f.multiplier, _mm512_loadu_ps(p.multipliers + b * kChannelBlock));
    f.recovering = _mm512_set1_epi32(static_cast<int32_t>(kRecovering));
    f.zero_point = _mm512_set1_epi16(static_cast<int16_t>(e.out.zero_point));
    f.low = _mm512_set1_epi8(static_cast<char>(e.lo)), f.high = _mm512_set1_epi8(static_cast<char>(e.hi));
    f.order = pack_order();
  }
  return finish;
}

// Claims the lines of the outputs of four tiles, before the first of the blocks whose codes share them is stored there:
// in a network other cores wrote there last.
void claim(const Column* columns, int64_t channel) {
  for (const Column* c = columns; c < columns + kSlots * kTileOutputs; ++c) {
    const uint8_t* const out = c->out + channel;
    asm volatile("prefetchw (%0)\n\tprefetchw (%0,%1)\n\tprefetchw (%0,%2)"
                 :
                 : "r"(out), "r"(c->second), "r"(c->third));
  }
}

// Blocks by blocks, whose transformed weights then stay in the L1 cache; V comes from the L2 cache for each.
template <bool kPlain, bool kSeven>
void run_rows(const ConvArgs& a, Range rows, Range blocks) {
  const Prepared p(a, const_cast<std::byte*>(a.prepared));
  const Scratch s(a, a.scratch);
  const BlockFinish* const finish = load_blocks(a, p, blocks, s.finish);
  const int64_t height = a.epilogue.out.h;
  Column columns[2][kMostTiles / kSlots][kSlots * kTileOutputs];  // now and before
  Unfinished before;
  int now = 0, now_m = 0;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t image = row / height, end = smaller(rows.end, (image + 1) * height);
    const Tiles tiles(a, image, {row - image * height, end - image * height});
    for (int64_t first = 0; first < tiles.count(); first += kMostTiles, now ^= 1) {
      const Range run{first, smaller(first + kMostTiles, tiles.count())};
      const int64_t passes = (run.end - run.begin + kSlots - 1) / kSlots;
      tiles.transform(run, s);
      for (int64_t i = 0; i < passes; ++i) tiles.columns(run.begin + i * kSlots, run.end, s.trash, columns[now][i]);
      for (int64_t b = blocks.begin; b < blocks.end; ++b)
        for (int64_t i = 0; i < passes; ++i, now_m ^= 1) {
          if (b % kLineBlocks == 0 && i + kClaimedAhead < passes)
            claim(columns[now][i + kClaimedAhead], b * kChannelBlock);
          run_tiles<kPlain, kSeven>(s.v + i * kSlots * kTileBytes, p.weights + b * kBlockWeightBytes, s.m[now_m],
                                    before);
          before = {columns[now][i], finish + b, s.m[now_m], b * kChannelBlock};
        }
    }
    row = end;
  }
  finish_rest<kPlain>(before);
}

using RunRows = void(const ConvArgs&, Range, Range);
void run(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const Epilogue& e = a.epilogue;
  if (!*Prepared(a, const_cast<std::byte*>(a.prepared)).proved) return conv_avx512_vnni(a, rows, blocks);
  const bool plain = e.out.zero_point == 0 && e.lo == 0 && e.hi == 255;
  static constexpr RunRows* kRunRows[2][2] = {{run_rows<false, false>, run_rows<false, true>},
                                              {run_rows<true, false>, run_rows<true, true>}};
  kRunRows[plain][has_seven_taps(a.geometry)](a, rows, blocks);
}

// Measured with ResNet's first layer on Zen 4, where the finish costs nothing beside the products.
double cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const double tiles = static_cast<double>(out.n * ((out.h + kTileOutputs - 1) / kTileOutputs) *
                                           ((out.w + kTileOutputs - 1) / kTileOutputs));
  const double block = (cpu_model().shared_ports ? 400 : 280) * (has_seven_taps(a.geometry) ? 0.91 : 1),
               input = 95;  // cycles of a tile
  const double blocks = static_cast<double>(padded_channels(a.geometry.out_channels)) / kChannelBlock;
  return 0.7 + tiles * (blocks * block + input) / (cpu_model().cycles_per_us_of_zen4 * threads);
}

}  // namespace

ConvTactic image_winograd_tactic() {
  return {.name = "image_winograd",
          .isa = Isa::kAvx512Vnni,
          .applies = applies,
          .prepared_bytes = prepared_bytes,
          .prepare = prepare,
          .scratch_bytes = scratch_bytes,
          .run = run,
          .rows_at_once = kTileOutputs,
          .cost = cost};
}

}  // namespace octet::kernels

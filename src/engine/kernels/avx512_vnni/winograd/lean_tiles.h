// What the Winograd convolutions that transform their weights in every run share beside the transforms: the tiles, the
// proof that their sums are exact, and how sums become codes.
//
// The proof is that of winograd.h, made in the first run, because there is nothing to prepare. Where all input channels
// hold it together, the outputs get 64 times the sums; otherwise they are cut into parts that are recovered one by one.
#pragma once
#include "engine/kernels/avx512_vnni/finish.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/winograd/lean_transforms.h"
#include "engine/kernels/winograd/winograd.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMostTiles = 64;

// Tiles of the output, those with four rows and four columns in the middle: the tiles of every position are a range.
struct Tiles {
  int64_t across = 0, down = 0, count = 0;  // in an image, in all images
  bool thirds = false;                      // the tiles of 7x7 outputs, of which three have F(3,3) in a direction
  int64_t ordered[kMostTiles] = {};         // the place of each tile, counted over [image][row][column], in this order
  int64_t first_whole = 0, first_narrow = 0, first_small = 0;

  // may_have_thirds: false for schedules without code for F(3,3); their tiles of 7x7 have outputs beyond the border.
  explicit Tiles(const QTensor& out, bool may_have_thirds = true) {
    thirds = may_have_thirds && out.n == 1 && out.h == 7 && out.w == 7;
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
  }
  int64_t row(int64_t t) const { return t / across % down; }
  // Outputs of a tile along an axis, as its transforms have them: 4, 3 or 2.
  int rows(const QTensor& out, int64_t t) const { return outputs(out.h - row(t) * kWinogradTile); }
  int columns(const QTensor& out, int64_t t) const { return outputs(out.w - t % across * kWinogradTile); }
  int outputs(int64_t left) const { return left <= 2 ? 2 : left == 3 && thirds ? 3 : 4; }
  bool is_tall(const QTensor& out, int64_t t) const { return rows(out, t) == 4; }
  bool is_wide(const QTensor& out, int64_t t) const { return columns(out, t) == 4; }
  bool all_whole() const { return first_whole == 0 && first_narrow == count; }
  // Positions 3 and 4 of an axis are the points 2 and -2.
  Range of_position(int y, int x) const {
    const int narrow = thirds ? 3 : 2;
    const bool tall = !has_position(narrow, y), wide = !has_position(narrow, x);
    return {tall ? first_whole : 0, tall && wide ? first_narrow : tall ? first_small : wide ? first_narrow : count};
  }
};

// Calls f<rows, columns>() for a tile. Three in one direction come with three or four in the other.
template <typename F>
OCTET_INLINE void with_outputs(int rows, int columns, const F& f) {
  switch (rows * 10 + columns) {
    case 44:
      return f.template operator()<4, 4>();
    case 42:
      return f.template operator()<4, 2>();
    case 24:
      return f.template operator()<2, 4>();
    case 22:
      return f.template operator()<2, 2>();
    case 43:
      return f.template operator()<4, 3>();
    case 34:
      return f.template operator()<3, 4>();
    default:
      return f.template operator()<3, 3>();
  }
}

OCTET_INLINE bool lean_winograd_applies(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  return winograd_applies(a) && g.in_channels % kChunk == 0 && pixel_bytes(g) == g.in_channels &&
         padded_channels(g.out_channels) >= kVectors * kChannelBlock && Tiles(a.epilogue.out).count <= kMostTiles;
}

// What the first run finds out about the weights.
struct Proof {
  int32_t parts = 0;    // into which the input channels are cut, of whole chunks each; 0: not known yet
  int32_t at_once = 0;  // one part, and its outputs are 64 times the sums: winograd_at_once()
};
// It is kept, with the start and the multiplier of every output channel for `at_once`: 64 times and one 64th.
struct Kept {
  Proof* proof;
  int32_t* starts;
  float* multipliers;
  Kept(const ConvArgs& a, std::byte* at)
      : proof(reinterpret_cast<Proof*>(at)),
        starts(reinterpret_cast<int32_t*>(at + 64)),
        multipliers(reinterpret_cast<float*>(starts + padded_channels(a.geometry.out_channels))) {}
  static int64_t bytes(const ConvArgs& a) { return 64 + padded_channels(a.geometry.out_channels) * 8; }
};

OCTET_INLINE int64_t proof_bytes(const ConvArgs& a) {
  return padded_channels(a.geometry.out_channels) * (a.geometry.in_channels / kChunk) * 2 * 4;
}
// The sums of the positive weights of every output channel and chunk, and of the absolute values of the negative ones,
// as winograd_parts() takes them.
__attribute__((noinline)) void add_weights(const ConvArgs& a, int32_t* sums) {
  const int64_t chunks = a.geometry.in_channels / kChunk;
  const Z zero = _mm512_setzero_si512(), one = _mm512_set1_epi8(1);
  const int8_t* w = a.weights;
  for (int64_t b = 0; b < padded_channels(a.geometry.out_channels) / kChannelBlock; ++b, w += 9 * chunks * kChunk * 16)
    for (int64_t c = 0; c < chunks; ++c, sums += 2 * kChannelBlock) {
      Z positive = zero, negative = zero;
      for (int64_t tap = 0; tap < 9; ++tap)
        for (int64_t four = 0; four < kChunk / 4; ++four) {
          const Z weights = _mm512_loadu_si512(w + ((tap * chunks + c) * kChunk / 4 + four) * 64);
          positive = _mm512_dpbusd_epi32(positive, _mm512_max_epi8(weights, zero), one);
          negative = _mm512_dpbusd_epi32(negative, _mm512_sub_epi8(zero, _mm512_min_epi8(weights, zero)), one);
        }
      _mm512_storeu_si512(sums, positive);
      _mm512_storeu_si512(sums + kChannelBlock, negative);
    }
}

// What is kept from now on, if its number of parts is still 0. sums: proof_bytes() of scratch memory.
__attribute__((noinline)) void prove(const ConvArgs& a, const Kept& kept, int32_t* sums) {
  if (kept.proof->parts != 0) return;
  add_weights(a, sums);
  WinogradPlan plan;
  plan.chunks = a.geometry.in_channels / kChunk;
  const int64_t channels = padded_channels(a.geometry.out_channels);
  Proof proof;
  proof.parts = winograd_parts(sums, channels / kChannelBlock, plan.chunks);
  proof.at_once = proof.parts == 1 && winograd_at_once(a, plan, sums, kept.starts, kept.multipliers);
  for (int64_t c = 0; c < channels; ++c)
    kept.starts[c] = static_cast<int32_t>(static_cast<uint32_t>(a.acc_init[c]) * 64);
  *kept.proof = proof;
}

// V of a tile, as transform_codes_of_tile() takes it.
OCTET_INLINE void transform_tile(const ConvArgs& a, const Tiles& tiles, int64_t t, std::byte* const* to,
                                 int64_t chunk_bytes) {
  const QTensor &in = a.in, &out = a.epilogue.out;
  const ConvGeometry& g = a.geometry;
  const int64_t y = tiles.row(t) * kWinogradTile, x = t % tiles.across * kWinogradTile;
  const int64_t last_row = smaller(out.h - y, kWinogradTile) + 1, last_column = smaller(out.w - x, kWinogradTile) + 1;
  const uint8_t* first = in.data + t / (tiles.across * tiles.down) * in.image_stride + (y - g.pad_top) * in.row_stride +
                         (x - g.pad_left) * in.c_pitch;
  TileInput input;
  for (int64_t i = 0; i < 6; ++i) {
    input.row[i] = first + smaller(i, last_row) * in.row_stride;
    input.column[i] = smaller(i, last_column) * in.c_pitch;
  }
  with_outputs(
      tiles.rows(out, t), tiles.columns(out, t), [&]<int R, int C>() __attribute__((always_inline)) {
        transform_codes_of_tile<R, C>(input, g.in_channels, to, chunk_bytes);
      });
}

// From the sums of kVectors blocks of output channels to codes. Memory, in int32:
struct TileSums {
  int32_t* m;        // [tile, as ordered][position][kVectors][16]
  int32_t* outputs;  // of a row of tiles: [4][pixel][kVectors][16]
  int32_t* totals;   // of all rows of tiles, where there are several parts

  static constexpr int64_t kPixel = kVectors * kChannelBlock, kTile = kWinogradPositions * kPixel;
  static int64_t row(const Tiles& t) { return t.across * 16 * kPixel; }
  static int64_t bytes(const Tiles& t) { return (t.count * kTile + row(t) + t.count * 16 * kPixel) * 4; }
  TileSums(std::byte* at, const Tiles& t)
      : m(reinterpret_cast<int32_t*>(at)), outputs(m + t.count * kTile), totals(outputs + row(t)) {}
};

class TileFinish {
 public:
  TileFinish(const ConvArgs& a, const Tiles& tiles, const TileSums& sums, const Kept& kept)
      : args_(a),
        kept_(kept),
        tiles_(tiles),
        sums_(sums),
        proof_(*kept.proof),
        epilogue_(epilogue_of(a, kept)),
        constants_(make_constants(epilogue_)),
        codes_(epilogue_),
        to_codes_(proof_.at_once && PixelCodes::applies(epilogue_)) {}

  // Blocks `block` and the next, when all sums of a part are there; of the last part, to codes.
  void operator()(int64_t block, int64_t part) const {
    if (to_codes_) return finish_codes(block);
    alignas(64) static constexpr int32_t kNone[kVectors * kChannelBlock] = {};
    const int64_t row = tiles_.across * kWinogradTile;
    const int32_t* starts = proof_.at_once ? kept_.starts + block * kChannelBlock : kNone;
    for (int64_t t = 0; t < tiles_.count; t += tiles_.across) {
      for (int64_t i = 0; i < tiles_.across; ++i) {
        const QTensor& out = args_.epilogue.out;
        with_outputs(
            tiles_.rows(out, t + i), tiles_.columns(out, t + i), [&]<int R, int C>() __attribute__((always_inline)) {
              recover<R, C>(sums_.m + tiles_.ordered[t + i] * TileSums::kTile, starts,
                            sums_.outputs + i * kWinogradTile * TileSums::kPixel, row);
            });
      }
      const int32_t* acc = sums_.outputs;
      if (!proof_.at_once) acc = add_part(block, part, t / tiles_.across);
      if (part + 1 < proof_.parts) continue;
      const int64_t y = tiles_.row(t) * kWinogradTile;
      for (int64_t i = 0; i < smaller(kWinogradTile, epilogue_.out.h - y); ++i)
        finish_row({acc + i * row * TileSums::kPixel, epilogue_.out.w, block * kChannelBlock,
                    t / (tiles_.across * tiles_.down), y + i, 0});
    }
  }

 private:
  const ConvArgs& args_;
  const Kept kept_;
  const Tiles& tiles_;
  const TileSums& sums_;
  const Proof proof_;
  const Epilogue epilogue_;
  const Constants constants_;
  const PixelCodes codes_;
  const bool to_codes_;  // straight from the sums, without accumulators

  static Epilogue epilogue_of(const ConvArgs& a, const Kept& kept) {
    Epilogue e = a.epilogue;
    if (kept.proof->at_once) {
      e.multiplier = kept.multipliers;
      e.limits.least_multiplier /= 64, e.limits.greatest_multiplier /= 64;
      constexpr int64_t kMost = int64_t{1} << 31;
      e.limits.greatest_sum = e.limits.greatest_sum > kMost / 64 ? kMost : e.limits.greatest_sum * 64;
    }
    return e;
  }

  void finish_codes(int64_t block) const {
    const QTensor& out = epilogue_.out;
    const int32_t* const starts = kept_.starts + block * kChannelBlock;
    for (int64_t t = 0; t < tiles_.count; ++t) {
      const int64_t y = tiles_.row(t) * kWinogradTile, x = t % tiles_.across * kWinogradTile,
                    n = t / (tiles_.across * tiles_.down), channel = block * kChannelBlock;
      const TileOutput to{codes_.at(n, y, x, channel), smaller(out.h - y, kWinogradTile),
                          smaller(out.w - x, kWinogradTile), channel};
      with_outputs(
          tiles_.rows(out, t), tiles_.columns(out, t), [&]<int R, int C>() __attribute__((always_inline)) {
            recover_codes<R, C>(sums_.m + tiles_.ordered[t] * TileSums::kTile, starts, codes_, to);
          });
    }
  }

  __attribute__((noinline)) void finish_row(const FinishTile& t) const { finish<kVectors>(t, epilogue_, constants_); }

  // The accumulators of a row of tiles so far.
  __attribute__((noinline)) const int32_t* add_part(int64_t block, int64_t part, int64_t row_of_tiles) const {
    const int64_t count = TileSums::row(tiles_);
    int32_t* total = sums_.totals + row_of_tiles * count;
    for (int64_t i = 0; i < count; i += kChannelBlock) {
      const int32_t* before = part > 0 ? total + i : args_.acc_init + block * kChannelBlock + i % TileSums::kPixel;
      const Z sum = _mm512_srai_epi32(_mm512_loadu_si512(sums_.outputs + i), 6);
      _mm512_storeu_si512(total + i, _mm512_add_epi32(sum, _mm512_loadu_si512(before)));
    }
    return total;
  }
};

// Always by output channels, in whole groups: every weight is transformed once.
OCTET_INLINE ConvShare lean_winograd_share(const ConvArgs& a, int part, int parts) {
  const int64_t blocks = padded_channels(a.geometry.out_channels) / kChannelBlock,
                groups = (blocks + kVectors - 1) / kVectors;
  return {{0, a.epilogue.out.n * a.epilogue.out.h},
          {smaller(blocks, groups * part / parts * kVectors), smaller(blocks, groups * (part + 1) / parts * kVectors)},
          {}};
}

// Lines to fetch meanwhile, and again from the start where there are fewer.
struct Ahead {
  const int8_t *begin, *end, *at;

  // The weights after those of `block` and the next, or those of the next convolution. weights: of all blocks.
  Ahead(const ConvArgs& a, const int8_t* weights, int64_t block, int64_t end_block) {
    const int64_t bytes = 9 * a.geometry.in_channels * kChannelBlock;
    const bool last = block + 2 * kVectors > end_block;
    begin = last ? reinterpret_cast<const int8_t*>(a.soon.data) : weights + (block + kVectors) * bytes;
    end = begin + (last ? a.soon.bytes : kVectors * bytes);
    if (begin == end) begin = weights + block * bytes, end = begin + kVectors * bytes;
    at = begin;
  }
  const int8_t* take(int64_t lines) {
    const int8_t* from = at;
    at += lines * 64;
    if (at >= end) at = begin;
    return from;
  }
};

// The run of a tactic. Schedule(args, tiles) lays out its scratch memory; multiply() adds the products of a slice of
// input channels, kChunksAtOnce chunks, for kVectors blocks of output channels, or stores them; it transforms the input
// when it is first called.
template <typename Schedule>
void run_slices(const ConvArgs& a, Range rows, Range blocks) {
  if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
  const bool whole = rows.begin == 0 && rows.end == a.epilogue.out.n * a.epilogue.out.h;
  if (!whole) return conv_avx512_vnni(a, rows, blocks);
  const Tiles tiles(a.epilogue.out, Schedule::kHasThirds);
  Schedule schedule(a, tiles);
  const Kept kept(a, a.kept);
  prove(a, kept, schedule.proof_scratch());
  const Proof proof = *kept.proof;
  const TileFinish finish(a, tiles, schedule.scratch.sums, kept);
  const int64_t chunks = a.geometry.in_channels / kChunk;
  int64_t b = blocks.begin;
  for (; b + kVectors <= blocks.end; b += kVectors) {
    Ahead ahead(a, a.weights, b, blocks.end);
    for (int64_t p = 0; p < proof.parts; ++p) {
      const Range part = winograd_part(chunks, proof.parts, p);
      for (int64_t c = part.begin; c < part.end; c += Schedule::kChunksAtOnce)
        schedule.multiply(b, {c, smaller(c + Schedule::kChunksAtOnce, part.end)}, c > part.begin, ahead);
      finish(b, p);
    }
  }
  conv_avx512_vnni(a, rows, {b, blocks.end});
}

}  // namespace
}  // namespace octet::kernels

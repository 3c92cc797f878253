// The Winograd convolution of winograd.h for any vector width. It is compiled for each instruction set, which supplies
//   using Vectors;                           // Vectors32 or Vectors64
//   static constexpr WinogradBlocking kBlocking;
//   static Words widen(const uint8_t*);      // as many bytes as Words has lanes
//   static SignedWords widen(const int8_t*);
//
//   template <int P, int V>
//   static void multiply(const int16_t* v, const int16_t* u, int64_t u_block, int64_t chunks, uint32_t* m, Ahead);
//
//   struct Rows;                             // made from an Epilogue
//   template <int V>                         // acc: [pixel][V][16]
//   void Rows::operator()(const int32_t* acc, int64_t pixels, int64_t channel, int64_t n, int64_t y, int64_t x) const;
//
// multiply: sums over input channels of v, [chunk][P][channel of the chunk], times u, V blocks of [pair][16][2] that
// lie u_block words apart; to m, P tiles of [36][V][16], at the first of the 36.
//
// Everything here is in an anonymous namespace: see kernels/CMakeLists.txt.
#pragma once
#include <cstring>
#include <utility>

#include "engine/kernels/winograd/ahead.h"
#include "engine/kernels/winograd/recover.h"
#include "engine/kernels/winograd/tiles.h"
#include "engine/kernels/winograd/transforms.h"
#include "engine/kernels/winograd/winograd.h"

namespace octet::kernels {
namespace {

template <typename K>
class Winograd {
 public:
  using Codes = typename CodesOf<K>::Type;
  static constexpr bool kHasCodes = requires { typename K::Codes; };
  using Words = typename K::Vectors::Words;
  using SignedWords = typename K::Vectors::SignedWords;
  using Sums = typename K::Vectors::Sums;
  using Accumulators = typename K::Vectors::Accumulators;
  static constexpr int64_t kLanes = sizeof(Sums) / 4;
  static constexpr int kTiles = K::kBlocking.tiles, kUnit = K::kBlocking.unit;
  static constexpr int64_t kChunk = K::kBlocking.chunk, kPanelLines = kChunk * kChannelBlock * 2 / 64;

  static void prepare(const ConvArgs& a, const WinogradPlan& plan, std::byte* prepared) {
    const ConvLayout l = conv_layout(a.geometry, a.in.c_pitch);
    auto* sums = reinterpret_cast<int32_t*>(prepared + plan.sums_at);
    std::memset(sums, 0, static_cast<size_t>(plan.prepared_bytes - plan.sums_at));
    const int64_t quads = padded_channels(a.geometry.in_channels) / 4, pitch = pixel_bytes(a.geometry) / 4;
    std::byte* u = prepared + sizeof(WinogradHeader);
    for (int64_t b = 0; b < l.blocks; ++b, u += plan.block_bytes) {
      const int8_t* block = a.weights + b * l.segments * l.dwords * 64;
      for (int64_t c = 0; c < plan.chunks; ++c) {
        int16_t positive[64] = {}, negative[64] = {};
        for (int64_t q = c * kChunk / 4; q < (c + 1) * kChunk / 4; ++q) {
          if (q < quads) {
            quad_weights(block + q * 64, pitch * 64, 3 * pitch * 64, u + q * 128, plan.position_bytes, positive,
                         negative);
          } else {
            for (int64_t i = 0; i < kWinogradPositions; ++i) std::memset(u + q * 128 + i * plan.position_bytes, 0, 128);
          }
        }
        int32_t* sum = sums + (b * plan.chunks + c) * 2 * kChannelBlock;
        for (int i = 0; i < 64; ++i) sum[i / 4] += positive[i], sum[kChannelBlock + i / 4] += negative[i];
      }
    }
    WinogradHeader header;
    header.parts = winograd_parts(sums, l.blocks, plan.chunks);
    header.at_once =
        header.parts == 1 && winograd_at_once(a, plan, sums, reinterpret_cast<int32_t*>(prepared + plan.starts_at),
                                              reinterpret_cast<float*>(prepared + plan.multipliers_at));
    std::memcpy(prepared, &header, sizeof header);
  }

  static void run(const ConvArgs& a, const WinogradPlan& plan, const std::byte* prepared, std::byte* scratch,
                  Range rows, Range blocks) {
    run_as<Winograd>(a, plan, prepared, scratch, rows, blocks);
  }

 protected:
  // Self: this class, or one derived from it with another multiply() and finish().
  template <typename Self>
  static void run_as(const ConvArgs& a, const WinogradPlan& plan, const std::byte* prepared, std::byte* scratch,
                     Range rows, Range blocks) {
    if (rows.begin >= rows.end || blocks.begin >= blocks.end) return;
    Self w(a, plan, prepared, scratch);
    TileCursor cursor{&a.epilogue.out, rows.begin, rows.end, 0};
    int64_t tiles = cursor.count();
    if (a.tiles.begin < a.tiles.end) {
      for (int64_t i = 0; i < a.tiles.begin; ++i) cursor.next();
      tiles = a.tiles.end - a.tiles.begin;
    }
    const int64_t turns = (tiles + plan.block_tiles - 1) / plan.block_tiles;
    for (int64_t t = 0; t < turns; ++t) {
      w.count_ = tiles * (t + 1) / turns - tiles * t / turns;
      w.products_ = (w.count_ + kTiles - 1) / kTiles;
      for (int64_t i = 0; i < w.count_; ++i) w.tiles_[i] = cursor.next();
      for (int64_t p = 0; p < w.products_; ++p) w.transform(p);
      for (int64_t b = blocks.begin; b < blocks.end;) {
        const Range group{b, b + w.group_ < blocks.end ? b + w.group_ : blocks.end};
        w.multiply(group);
        w.finish(group);
        b = group.end;
      }
    }
  }

  using Multiply = void(const int16_t*, const int16_t*, int64_t, int64_t, uint32_t*, Ahead);

  const ConvArgs& args_;
  const WinogradPlan& plan_;
  const std::byte* u_;
  std::byte* v_;
  std::byte* m_;
  int32_t* acc_;
  TilePlace* tiles_;
  int64_t parts_, group_;
  int64_t count_ = 0, products_ = 0;  // of the current block of tiles
  const int32_t* starts_;             // where they are part of the sums
  const Epilogue epilogue_;
  typename K::Rows finish_;
  const Codes codes_;
  bool to_codes_ = false;  // straight from the sums, without accumulators

  static WinogradHeader header_of(const std::byte* prepared) {
    WinogradHeader header;
    std::memcpy(&header, prepared, sizeof header);
    return header;
  }
  static Epilogue epilogue_of(const ConvArgs& a, const WinogradPlan& plan, const std::byte* prepared) {
    Epilogue e = a.epilogue;
    if (header_of(prepared).at_once) {
      e.multiplier = reinterpret_cast<const float*>(prepared + plan.multipliers_at);
      e.limits.least_multiplier /= 64, e.limits.greatest_multiplier /= 64;
      constexpr int64_t kMost = int64_t{1} << 31;
      e.limits.greatest_sum = e.limits.greatest_sum > kMost / 64 ? kMost : e.limits.greatest_sum * 64;
    }
    return e;
  }

  Winograd(const ConvArgs& a, const WinogradPlan& plan, const std::byte* prepared, std::byte* scratch)
      : args_(a),
        plan_(plan),
        u_(prepared + sizeof(WinogradHeader)),
        epilogue_(epilogue_of(a, plan, prepared)),
        finish_(epilogue_),
        codes_(epilogue_) {
    v_ = scratch;
    m_ = v_ + plan.v_bytes;
    acc_ = reinterpret_cast<int32_t*>(m_ + plan.m_bytes);
    tiles_ = reinterpret_cast<TilePlace*>(m_ + plan.m_bytes + plan.acc_bytes);
    const WinogradHeader header = header_of(prepared);
    parts_ = header.parts;
    starts_ = header.at_once ? reinterpret_cast<const int32_t*>(prepared + plan.starts_at) : nullptr;
    if constexpr (kHasCodes) to_codes_ = starts_ && Codes::applies(epilogue_);
    const int64_t fit = plan.sum_blocks / parts_ / kUnit * kUnit;
    group_ = fit < plan.group ? fit : plan.group;
  }

  // The tiles of product p of this block.
  Range product(int64_t p) const { return {count_ * p / products_, count_ * (p + 1) / products_}; }
  int64_t v_position_bytes(int64_t tiles) const { return tiles * plan_.channels * 2 + 64; }
  std::byte* v_of(Range tiles, int64_t p) const {
    return v_ + kWinogradPositions * (tiles.begin * plan_.channels * 2 + p * 64);
  }
  // M of `index`, counted over (unit, part), for these tiles: [tile][36][V][16].
  uint32_t* m_of(int64_t index, Range tiles) const {
    return reinterpret_cast<uint32_t*>(m_) +
           (index * count_ + tiles.begin) * kWinogradPositions * kUnit * kChannelBlock;
  }

  // Four input channels of 16 output channels: bytes [16][4] in the file, words [36][pair][16][2] in `u`.
  static void quad_weights(const int8_t* in, int64_t x_step, int64_t y_step, std::byte* u, int64_t position_bytes,
                           int16_t* positive, int16_t* negative) {
    constexpr int kHalf = sizeof(Words) / 2;
    for (int64_t first = 0; first < 64; first += kChunk) {
      Words columns[3][6], lines[6];
      SignedWords up = load_vector<SignedWords>(positive + first), down = load_vector<SignedWords>(negative + first);
      for (int x = 0; x < 3; ++x) {
        Words g[3];
#pragma GCC unroll 3
        for (int y = 0; y < 3; ++y) {
          const SignedWords w = K::widen(in + y * y_step + x * x_step + first);
          up += w & (w > 0);
          down -= w & (w < 0);
          g[y] = __builtin_bit_cast(Words, w);
        }
        transform_weights(g[0], g[1], g[2], columns[x]);
      }
      store_vector(positive + first, up);
      store_vector(negative + first, down);
      for (int y = 0; y < 6; ++y) {
        transform_weights(columns[0][y], columns[1][y], columns[2][y], lines);
        for (int x = 0; x < 6; ++x) {
          const Sums d = K::Vectors::even_then_odd(__builtin_bit_cast(Sums, lines[x]));
          std::byte* to = u + (y * 6 + x) * position_bytes + first;
          std::memcpy(to, &d, kHalf);
          std::memcpy(to + 64, reinterpret_cast<const char*>(&d) + kHalf, kHalf);
        }
      }
    }
  }

  // Where the 6 rows and 6 columns that a tile reads lie. Rows and columns beyond the last one that an output of this
  // tile needs are read from that one again: they only reach outputs that are not there.
  struct TileInput {
    const uint8_t* row[6];
    int64_t column[6];
  };
  TileInput input_of(const TilePlace& t) const {
    const QTensor& in = args_.in;
    const ConvGeometry& g = args_.geometry;
    const uint8_t* first =
        in.data + t.n * in.image_stride + (t.y - g.pad_top) * in.row_stride + (t.x - g.pad_left) * in.c_pitch;
    TileInput tile;
    for (int64_t i = 0; i < 6; ++i) {
      tile.row[i] = first + (i < t.height + 1 ? i : t.height + 1) * in.row_stride;
      tile.column[i] = (i < t.width + 1 ? i : t.width + 1) * in.c_pitch;
    }
    return tile;
  }

  // V of product p: [36][chunk][tile][channel of the chunk].
  void transform(int64_t p) {
    const Range range = product(p);
    const int64_t tiles = range.end - range.begin, step = v_position_bytes(tiles);
    TileInput inputs[kTiles];
    for (int64_t i = 0; i < tiles; ++i) inputs[i] = input_of(tiles_[range.begin + i]);
    std::byte* to = v_of(range, p);
    for (int64_t channel = 0; channel < plan_.channels; channel += kChunk)
      for (int64_t i = 0; i < tiles; ++i, to += sizeof(Words)) transform_tile(inputs[i], channel, to, step);
  }
  // A function of its own, because the compiler would keep its pointers in vector registers otherwise.
  __attribute__((noinline)) static void transform_tile(const TileInput& in, int64_t channel, std::byte* to,
                                                       int64_t step) {
    const uint8_t *r0 = in.row[0] + channel, *r1 = in.row[1] + channel, *r2 = in.row[2] + channel,
                  *r3 = in.row[3] + channel, *r4 = in.row[4] + channel, *r5 = in.row[5] + channel;
    Words lines[6][6];
#pragma GCC unroll 6
    for (int x = 0; x < 6; ++x) {
      const int64_t at = in.column[x];
      const Words column[6] = {K::widen(r0 + at), K::widen(r1 + at), K::widen(r2 + at),
                               K::widen(r3 + at), K::widen(r4 + at), K::widen(r5 + at)};
      Words v[6];
      transform_input(column, v);
#pragma GCC unroll 6
      for (int y = 0; y < 6; ++y) lines[y][x] = v[y];
    }
#pragma GCC unroll 6
    for (int y = 0; y < 6; ++y, to += 6 * step) {
      Words v[6];
      transform_input(lines[y], v);
#pragma GCC unroll 6
      for (int x = 0; x < 6; ++x) {
        store_vector(to + x * step, v[x]);
        __builtin_prefetch(to + x * step + 64, 1);  // for the next tile
      }
    }
  }

  template <int V, int... P>
  static Multiply* multiply_of(int64_t tiles, std::integer_sequence<int, P...>) {
    static constexpr Multiply* kTable[] = {K::template multiply<P + 1, V>...};
    return kTable[tiles - 1];
  }
  template <int V = kUnit>
  static Multiply* multiply_of(int64_t tiles, int64_t blocks) {
    if constexpr (V > 1) {
      if (blocks < V) return multiply_of<V - 1>(tiles, blocks);
    }
    return multiply_of<V>(tiles, std::make_integer_sequence<int, kTiles>{});
  }

  void multiply(Range group) {
    // Weights of large layers come from beyond the L2 cache: every panel is fetched while the one before it is used, a
    // share of it by each product.
    const int64_t lines = (kPanelLines + products_ - 1) / products_;
    const std::byte* u = u_ + group.begin * plan_.block_bytes;
    for (int64_t i = 0; i < kWinogradPositions; ++i)
      for (int64_t b = group.begin, unit = 0; b < group.end; b += kUnit, ++unit) {
        const int64_t unit_blocks = b + kUnit < group.end ? kUnit : group.end - b;
        const std::byte* next = b + kUnit < group.end
                                    ? u + kUnit * plan_.block_bytes
                                    : u_ + group.begin * plan_.block_bytes + (i + 1) * plan_.position_bytes;
        for (int64_t part = 0; part < parts_; ++part) {
          const Range chunks = winograd_part(plan_.chunks, parts_, part);
          const int64_t count = chunks.end - chunks.begin, panel = chunks.begin * kChunk * kChannelBlock * 2;
          for (int64_t p = 0; p < products_; ++p) {
            const Range range = product(p);
            const int64_t tiles = range.end - range.begin, vectors = unit_blocks * kChannelBlock;
            const std::byte* v = v_of(range, p) + i * v_position_bytes(tiles) + chunks.begin * tiles * kChunk * 2;
            Multiply* f = multiply_of(tiles, unit_blocks);
            const int64_t first = p * lines;
            const Ahead ahead{next + panel + first * count * 64, first < kPanelLines ? lines : 0};
            f(reinterpret_cast<const int16_t*>(v), reinterpret_cast<const int16_t*>(u + panel), plan_.block_bytes / 2,
              count, m_of(unit * parts_ + part, range) + i * vectors, ahead);
          }
        }
        u = next;
      }
  }

  void finish(Range group) {
    for (int64_t b = group.begin, unit = 0; b < group.end; b += kUnit, ++unit)
      for (int64_t p = 0; p < products_; ++p) finish_unit(b, unit, product(p), group.end - b);
  }
  template <int V = kUnit>
  void finish_unit(int64_t block, int64_t unit, Range range, int64_t blocks) {
    if constexpr (V > 1) {
      if (blocks < V) return finish_unit<V - 1>(block, unit, range, blocks);
    }
    finish_product<V>(block, unit, range);
  }

  // Tiles that follow each other in a row of tiles leave together.
  template <int V>
  void finish_product(int64_t block, int64_t unit, Range range) {
    if constexpr (kHasCodes) {
      if (to_codes_) {
        const uint32_t* m = m_of(unit, range);
        for (int64_t i = range.begin; i < range.end; ++i, m += kWinogradPositions * V * kChannelBlock)
          recover_codes<V>(m, tiles_[i], block * kChannelBlock);
        return;
      }
    }
    for (int64_t first = range.begin; first < range.end;) {
      const TilePlace& t = tiles_[first];
      int64_t end = first + 1;
      while (end < range.end && tiles_[end].n == t.n && tiles_[end].y == t.y) ++end;
      const int64_t row = (end - first) * kWinogradTile;  // pixels of a row of acc_
      for (int64_t i = first; i < end; ++i) {
        const auto m_of_part = [&](int64_t part) {
          return m_of(unit * parts_ + part, range) + (i - range.begin) * kWinogradPositions * V * kChannelBlock;
        };
        int32_t* acc = acc_ + (i - first) * kWinogradTile * V * kChannelBlock;
        if (starts_) {
          recover<V, true>(m_of_part(0), starts_ + block * kChannelBlock, false, acc, row);
        } else {
          for (int64_t part = 0; part < parts_; ++part)
            recover<V, false>(m_of_part(part), args_.acc_init + block * kChannelBlock, part > 0, acc, row);
        }
      }
      const int64_t pixels = row - kWinogradTile + tiles_[end - 1].width;
      for (int64_t y = 0; y < t.height; ++y)
        finish_.template operator()<V>(acc_ + y * row * V * kChannelBlock, pixels, block * kChannelBlock, t.n, t.y + y,
                                       t.x);
      first = end;
    }
  }

  // One tile of M, [36][V][16], to codes.
  template <int V>
  __attribute__((noinline)) void recover_codes(const uint32_t* m, const TilePlace& t, int64_t channel) const {
    for (int64_t lane = 0; lane < V * kChannelBlock; lane += kLanes, channel += kLanes) {
      uint8_t* const out = codes_.at(t.n, t.y, t.x, channel);
      recover_rows(
          m + lane, V * kChannelBlock,
          load_vector<Sums>(starts_ + channel), [&](int y, const Sums(&outputs)[4]) __attribute__((always_inline)) {
            if (y < t.height) codes_.store(outputs, channel, out + y * codes_.row_stride(), t.width);
          });
    }
  }

  // One tile of M, [36][V][16], to acc [4 rows of `row` pixels][V][16]. AtOnce: to 64 acc, see winograd.h.
  template <int V, bool AtOnce>
  static void recover(const uint32_t* m, const int32_t* starts, bool add, int32_t* acc, int64_t row) {
    constexpr int64_t kStep = V * kChannelBlock;
    for (int64_t lane = 0; lane < kStep; lane += kLanes) {
      const auto start = load_vector<Accumulators>(starts + lane);
      recover_rows(
          m + lane, kStep, AtOnce ? __builtin_bit_cast(Sums, start) : Sums{},
          [&](int y, const Sums(&outputs)[4]) __attribute__((always_inline)) {
            int32_t* const to = acc + y * row * kStep + lane;
#pragma GCC unroll 4
            for (int x = 0; x < 4; ++x) {
              if constexpr (AtOnce) {
                store_vector(to + x * kStep, outputs[x]);
              } else {
                const Accumulators sum = (__builtin_bit_cast(Accumulators, outputs[x]) >> 6) +
                                         (add ? load_vector<Accumulators>(to + x * kStep) : start);
                store_vector(to + x * kStep, sum);
              }
            }
          });
    }
  }
};

}  // namespace
}  // namespace octet::kernels

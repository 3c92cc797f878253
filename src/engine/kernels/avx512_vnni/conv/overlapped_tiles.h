// Products of pixels that are runs of dwords, while the tile before is finished: overlapped.cc, packed_pixels.cc.
//
// With few products for each sum the finish takes up to a third of the time, more with a residual and two roundings.
// Processors overlap products and finish only as far as they look ahead, and half as far where another thread shares
// the core. Tiles half as large as those of "direct" leave registers for the sums of the tile before: on AMD's Zen 5 a
// store takes a slot of the products, and sums that are stored to be finished are many.
#pragma once
#include "engine/kernels/avx512_vnni/conv/row_runs.h"
#include "engine/kernels/avx512_vnni/register_finish.h"

namespace octet::kernels {
namespace {

constexpr int kUnit = 4;   // vectors of sums that are finished together, because they fill a vector of codes
constexpr int kUnits = 3;  // of a tile
constexpr int64_t kDwordsAtOnce = 4;
constexpr int64_t kLeastDwords = kUnits * kDwordsAtOnce;  // a unit of the tile before is finished with every four

// A tile has V vectors of 16 output channels, 4 or 2, and so three or six pixels.
template <int V>
constexpr int kPixels = kUnits* kUnit / V;

// What the tiles of a group of channels start from, and what finishes them.
struct alignas(64) TileFinish {
  int32_t start[kUnit * kChannelBlock];
  RegisterFinish codes;
};

// Where the codes of a unit are. Distances in bytes.
struct UnitPlace {
  const uint8_t* residual = nullptr;
  uint8_t* out = nullptr;
  int64_t residual_pixel = 0, out_pixel = 0;  // from its first pixel to its second, where it has two
};

// From the sums of one unit to its codes, in steps that products of the next tile come between.
template <int V, Sum S, Residual R, Limits L>
struct UnitFinish {
  static constexpr int kSteps = 9;

  template <int Step>
  static OCTET_INLINE void step(const TileFinish& f, const MiddleLimits& limits, Z (&values)[kUnit],
                                const UnitPlace& at) {
    // A vector is completed when the next one, or the one after that, has begun.
    if constexpr (Step == 0) begin<0>(f, limits, values);
    if constexpr (Step == 1) begin<1>(f, limits, values);
    if constexpr (Step == 2) complete<0>(f, values, at);
    if constexpr (Step == 3) begin<2>(f, limits, values);
    if constexpr (Step == 4) complete<1>(f, values, at);
    if constexpr (Step == 5) begin<3>(f, limits, values);
    if constexpr (Step == 6) complete<2>(f, values, at);
    if constexpr (Step == 7) complete<3>(f, values, at);
    if constexpr (Step == 8) {
      pack_words(values[0], values[1]);
      pack_words(values[2], values[3]);
      pack_codes<L>(values[0], values[2], f.codes);
      store(values[0], at);
    }
  }

 private:
  template <int N>
  static OCTET_INLINE void begin(const TileFinish& f, const MiddleLimits& limits, Z (&values)[kUnit]) {
    if constexpr (S == Sum::kRelu) return scale_relu_sums<N % V>(values[N], f.codes);
    scale_sums<N % V>(values[N], f.codes);
    if constexpr (S != Sum::kNone) round_middle(values[N], limits);
  }
  template <int N>
  static OCTET_INLINE void complete(const TileFinish& f, Z (&values)[kUnit], const UnitPlace& at) {
    if constexpr (S != Sum::kNone && S != Sum::kRelu) {
      const uint8_t* const codes = at.residual + (N >= V ? at.residual_pixel : 0) + N % V * kChannelBlock;
      add_residual<S == Sum::kTwiceFused>(values[N], scaled_residual<R>(codes, f.codes), f.codes);
    }
    round(values[N]);
  }
  static OCTET_INLINE void store(const Z& codes, const UnitPlace& at) {
    if constexpr (V == kUnit) {
      asm volatile("vmovdqu64 %[codes], (%[out])" : : [codes] "v"(codes), [out] "r"(at.out) : "memory");
    } else {
      asm volatile(
          "vextracti64x4 $0, %[codes], (%[out])\n\t"
          "vextracti64x4 $1, %[codes], (%[out],%[pixel])"
          :
          : [codes] "v"(codes), [out] "r"(at.out), [pixel] "r"(at.out_pixel)
          : "memory");
    }
  }
};

// By hand, all of it: the compiler would keep an address for every load, change the order and spill registers.
template <int V>
struct Products {
  Z acc[kUnits][kUnit];  // [pixel][V] in order
  // Bytes from the first pixel of the tile to others: of four vectors to the second and the third, of two to those one,
  // three and five further on in the same row.
  int64_t second = 0, third = 0, fifth = 0;
  int64_t block = 0, block3 = 0;  // from one block of weights to the next, and three times that

  // kCopies: where loads are scarce. Elsewhere they cost nothing, and copies may take the units of the products (not
  // those of AMD's Zen 5).
  template <bool kCopies>
  OCTET_INLINE void start(const TileFinish& f) {
#pragma GCC unroll 3
    for (int u = 0; u < kUnits; ++u)
#pragma GCC unroll 4
      for (int i = 0; i < kUnit; ++i)
        if (kCopies && (u > 0 || i >= V)) {
          asm volatile("vmovdqa64 %1, %0" : "=v"(acc[u][i]) : "v"(acc[0][i % V]));
        } else {
          asm volatile("vmovdqa64 %1, %0" : "=v"(acc[u][i]) : "m"(*reinterpret_cast<const Z*>(f.start + i % V * 16)));
        }
  }
  // kFirst: of the first so many pixels only, with four vectors.
  template <int D, int kFirst = kPixels<V>>
  OCTET_INLINE void dword(const uint8_t* in, const int8_t* w) {
    Z weights[V];
    asm volatile("vmovdqa64 %c2(%1), %0" : "=v"(weights[0]) : "r"(w), "i"(D * 64));
    asm volatile("vmovdqa64 %c3(%1,%2), %0" : "=v"(weights[1]) : "r"(w), "r"(block), "i"(D * 64));
    if constexpr (V == 4) {
      asm volatile("vmovdqa64 %c3(%1,%2,2), %0" : "=v"(weights[2]) : "r"(w), "r"(block), "i"(D * 64));
      asm volatile("vmovdqa64 %c3(%1,%2), %0" : "=v"(weights[3]) : "r"(w), "r"(block3), "i"(D * 64));
      Z codes;
      asm volatile("vpbroadcastd %c2(%1), %0" : "=v"(codes) : "r"(in), "i"(D * 4));
      add<0>(codes, weights);
      if constexpr (kFirst == 1) return;
      asm volatile("vpbroadcastd %c3(%1,%2), %0" : "=v"(codes) : "r"(in), "r"(second), "i"(D * 4));
      add<1>(codes, weights);
      if constexpr (kFirst == 2) return;
      asm volatile("vpbroadcastd %c3(%1,%2), %0" : "=v"(codes) : "r"(in), "r"(third), "i"(D * 4));
      add<2>(codes, weights);
    } else {
      add<0>(broadcast<0, D>(in, second, third, fifth), weights);
      add<1>(broadcast<1, D>(in, second, third, fifth), weights);
      add<2>(broadcast<2, D>(in, second, third, fifth), weights);
      add<3>(broadcast<3, D>(in, second, third, fifth), weights);
      add<4>(broadcast<4, D>(in, second, third, fifth), weights);
      add<5>(broadcast<5, D>(in, second, third, fifth), weights);
    }
  }

 private:
  template <int P>
  OCTET_INLINE void add(const Z& codes, const Z (&weights)[V]) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      Z& sum = acc[(P * V + v) / kUnit][(P * V + v) % kUnit];
      asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(weights[v]));
    }
  }
};

// The sums of the tile before.
template <typename Finish>
struct Unfinished {
  Z sums[kUnits][kUnit];
  MiddleLimits limits;
  UnitPlace at;                                                 // of the next unit to finish
  int64_t residual_steps[kUnits] = {}, out_steps[kUnits] = {};  // to the next one
  static constexpr int kSteps = kUnits * Finish::kSteps;

  // Steps [S, End) of all units.
  template <int S, int End>
  OCTET_INLINE void steps(const TileFinish& f) {
    if constexpr (S < End) {
      constexpr int kNow = S / Finish::kSteps;
      Finish::template step<S % Finish::kSteps>(f, limits, sums[kNow], at);
      if constexpr ((S + 1) % Finish::kSteps == 0) {
        at.residual += residual_steps[kNow], at.out += out_steps[kNow];
        asm("" : "+r"(at.residual), "+r"(at.out));
      }
      steps<S + 1, End>(f);
    }
  }
};

// Where the dwords of a tile and their weights are, and weights to fetch meanwhile.
struct Cursor {
  const uint8_t* in;
  const int8_t *weights, *ahead, *soon;
};

// Four dwords of products, N times, and the finish of the tile before evenly between them.
template <int N, bool kFinish, int V, typename Finish, int I = 0>
OCTET_INLINE void four_dwords(Products<V>& m, Cursor& at, const TileFinish& f, Unfinished<Finish>& before) {
  if constexpr (I < N) {
    const auto dword = [&]<int D>() __attribute__((always_inline)) {
      constexpr int kAll = Unfinished<Finish>::kSteps, kNow = I * 4 + D;
      m.template dword<D>(at.in, at.weights);
      if constexpr (kFinish) before.template steps<kAll * kNow / (4 * N), kAll*(kNow + 1) / (4 * N)>(f);
    };
    dword.template operator()<0>();
    __builtin_prefetch(at.ahead, 0, 2);
    dword.template operator()<1>();
    dword.template operator()<2>();
    __builtin_prefetch(at.soon, 0, 2);
    dword.template operator()<3>();
    at.in += 16, at.weights += 256, at.ahead += 64, at.soon += 64;
    four_dwords<N, kFinish, V, Finish, I + 1>(m, at, f, before);
  }
}

// Rows of pixels, by the channels of a tile. Distances in bytes.
struct Pixels {
  const uint8_t* in = nullptr;
  const uint8_t* residual = nullptr;
  uint8_t* out = nullptr;
  int64_t in_step = 0, residual_step = 0, out_step = 0;  // from one pixel to the next
  int64_t in_gap = 0, residual_gap = 0, out_gap = 0;     // besides, from the last pixel of a row to the next row
  int64_t width = 0, count = 0;                          // pixels of a row, of all rows: a tile or more
};

// The weights of a tile's output channels.
struct Weights {
  const int8_t* begin = nullptr;
  int64_t block_bytes = 0, dwords = 0;
  const int8_t *ahead = nullptr, *ahead_end = nullptr;  // weights of the next group to fetch meanwhile
  const int8_t *soon = nullptr, *soon_end = nullptr;    // those of the next convolution, or any bytes: never nullptr
};

enum class Walk {
  kRows,     // any
  kOneLine,  // without gaps between rows
  kSixteen   // besides, of sixteen dwords; there nearly all loads are taken, also by addresses
};

// Pixels from the first of a tile to those whose lines it claims for writing. With sixteen dwords stores are so many
// that lines which this core does not own yet hold them up; with more products for each store claims only cost time.
constexpr int64_t kClaimedAhead = 24;
template <int V>
OCTET_INLINE void claim_output(const Pixels& pixels, int64_t x) {
  // Never beyond the last pixel: another thread writes there.
  const uint8_t* at = pixels.out + smaller(x + kClaimedAhead, pixels.count - kPixels<V>) * pixels.out_step;
  for (int64_t i = 0; i < kPixels<V>; ++i, at += pixels.out_step) asm volatile("prefetchw (%0)" : : "r"(at));
}

// The sums of the first kCount units, from pixel x on, which lies in row `row`.
template <int kCount, int V, typename Finish>
OCTET_INLINE void leave_sums(const Products<V>& m, const Pixels& pixels, int64_t x, int64_t row,
                             Unfinished<Finish>& to) {
#pragma GCC unroll 3
  for (int u = 0; u < kCount; ++u)
#pragma GCC unroll 4
    for (int i = 0; i < kUnit; ++i) to.sums[u][i] = m.acc[u][i];
  to.at.residual = pixels.residual + x * pixels.residual_step + row * pixels.residual_gap;
  to.at.out = pixels.out + x * pixels.out_step + row * pixels.out_gap;
}

// The last one or two pixels may be a tile of their own: repeating pixels of the tile before costs as much as they do,
// finishing that tile without other products beside it costs as much as the products of some ten dwords.
constexpr int64_t kWorthNarrowTiles = 64;  // dwords

// kCount pixels from the pixel x on, of one row.
template <typename Finish, int kCount>
__attribute__((noinline)) void run_narrow_tile(const TileFinish& f, const Pixels& pixels, const Weights& w, int64_t x) {
  const int64_t row = x / pixels.width;
  Products<kUnit> m;
  m.block = w.block_bytes, m.block3 = 3 * w.block_bytes;
  m.second = pixels.in_step;
  m.template start<false>(f);
  const uint8_t* in = pixels.in + x * pixels.in_step + row * pixels.in_gap;
  const int8_t* weights = w.begin;
  for (int64_t left = w.dwords; left > 0; --left, in += 4, weights += 64) m.template dword<0, kCount>(in, weights);
  Unfinished<Finish> tile;
  tile.limits = load_limits(f.codes);
  leave_sums<kCount>(m, pixels, x, row, tile);
  tile.residual_steps[0] = pixels.residual_step, tile.out_steps[0] = pixels.out_step;
  tile.template steps<0, kCount * Finish::kSteps>(f);
}

template <Walk W, int V, typename Finish>
void run_pixels(const TileFinish& f, const Pixels& pixels, Weights& w) {
  static_assert(V == kUnit || W == Walk::kOneLine, "two vectors: a unit has two pixels, which must be neighbors");
  constexpr int kFinishing = W == Walk::kSixteen ? 4 : kUnits;  // times four dwords
  constexpr bool kNarrow = V == kUnit && W != Walk::kSixteen;
  const int64_t rest = kNarrow && w.dwords >= kWorthNarrowTiles ? pixels.count % kPixels<V> : 0,
                count = pixels.count - rest;
  Products<V> m;
  m.block = w.block_bytes, m.block3 = 3 * w.block_bytes;
  m.second = pixels.in_step, m.third = (V == kUnit ? 2 : 3) * pixels.in_step, m.fifth = 5 * pixels.in_step;
  Unfinished<Finish> before;
  before.limits = load_limits(f.codes);
  before.at.residual_pixel = pixels.residual_step, before.at.out_pixel = pixels.out_step;
  int64_t row = 0, column = 0;
  for (int64_t x = 0; x < count; x += kPixels<V>, column += kPixels<V>) {
    const bool last = x > count - kPixels<V>;  // it may repeat pixels of the one before
    if (last) x = count - kPixels<V>;
    int64_t second_row = 0, third_row = 0;  // behind that of the first pixel
    if constexpr (W == Walk::kRows) {
      if (last) row = x / pixels.width, column = x % pixels.width;
      if (column >= pixels.width) ++row, column -= pixels.width;
      second_row = column + 1 >= pixels.width, third_row = column + 2 >= pixels.width;
      m.second = pixels.in_step + second_row * pixels.in_gap, m.third = 2 * pixels.in_step + third_row * pixels.in_gap;
    }
    m.template start<W == Walk::kSixteen>(f);
    if constexpr (W == Walk::kSixteen) claim_output<V>(pixels, x);
    Cursor at{pixels.in + x * pixels.in_step + row * pixels.in_gap, w.begin, w.ahead, w.soon};
    if (x > 0) {
      four_dwords<kFinishing, true>(m, at, f, before);
    } else {
      four_dwords<kFinishing, false>(m, at, f, before);
    }
    if constexpr (W != Walk::kSixteen) {
      for (int64_t left = w.dwords / kDwordsAtOnce - kFinishing; left > 0; --left)
        four_dwords<1, false>(m, at, f, before);
      for (int64_t left = w.dwords % kDwordsAtOnce; left > 0; --left, at.in += 4, at.weights += 64)
        m.template dword<0>(at.in, at.weights);
    }
    if (at.ahead < w.ahead_end) w.ahead = at.ahead;
    if (at.soon < w.soon_end) w.soon = at.soon;
    leave_sums<kUnits>(m, pixels, x, row, before);
    for (int u = 0; u + 1 < kUnits; ++u) {
      const int64_t ends = u == 0 ? second_row : third_row - second_row;
      before.residual_steps[u] = kUnit / V * pixels.residual_step + ends * pixels.residual_gap;
      before.out_steps[u] = kUnit / V * pixels.out_step + ends * pixels.out_gap;
    }
  }
  before.template steps<0, Unfinished<Finish>::kSteps>(f);
  if constexpr (kNarrow) {
    if (rest == 1) run_narrow_tile<Finish, 1>(f, pixels, w, count);
    if (rest == 2) run_narrow_tile<Finish, 2>(f, pixels, w, count);
  }
}

inline bool overlapped_finish_applies(const Epilogue& e) {
  return e.out.data != nullptr && !e.table && !e.function && sums_are_bounded(e) &&
         (e.residual.data == nullptr || e.rounds_twice);
}

using RunPixels = void(const TileFinish&, const Pixels&, Weights&);

// The variants that layers of real networks meet, because each takes long to compile.
template <Walk W, int V, Limits L>
RunPixels* kernel_of_sum(const Epilogue& e) {
  if (e.residual_tables) return run_pixels<W, V, UnitFinish<V, Sum::kTwiceFused, Residual::kTables, L>>;
  if (!e.sum_fuses) return run_pixels<W, V, UnitFinish<V, Sum::kTwice, Residual::kOnTwo23, L>>;
  if constexpr (L != Limits::kBoth) {
    if (e.residual.zero_point == 0)
      return run_pixels<W, V, UnitFinish<V, Sum::kTwiceFused, Residual::kOnTwo23NoZeroPoint, L>>;
  }
  return run_pixels<W, V, UnitFinish<V, Sum::kTwiceFused, Residual::kOnTwo23, L>>;
}
template <Walk W, int V>
RunPixels* kernel_without_sum(bool relu) {
  if (relu) return run_pixels<W, V, UnitFinish<V, Sum::kRelu, Residual::kOnTwo23, Limits::kUpper>>;
  return run_pixels<W, V, UnitFinish<V, Sum::kNone, Residual::kOnTwo23, Limits::kBoth>>;
}
// Of the last convolution of a residual block: where it ends with ReLU, codes begin with 0.
inline Limits limits_of(const Epilogue& e) {
  if (e.out.zero_point != 0 || e.lo != 0) return Limits::kBoth;
  return e.hi == 255 ? Limits::kPlain : Limits::kUpper;
}

// From the start of the sums and the multipliers of V blocks from block b on.
template <int V>
OCTET_INLINE void load_channels(const ConvArgs& a, int64_t b, bool relu, TileFinish& f) {
  const Z base = _mm512_set1_epi32(relu ? kBitsOfTwo23 : 0);
  for (int v = 0; v < V; ++v) {
    const __m512 multiplier = _mm512_loadu_ps(a.epilogue.multiplier + (b + v) * 16);
    _mm512_store_si512(f.start + v * 16, _mm512_add_epi32(_mm512_loadu_si512(a.acc_init + (b + v) * 16), base));
    _mm512_store_ps(f.codes.multiplier + v * 16, multiplier);
    _mm512_store_ps(f.codes.offset + v * 16, _mm512_mul_ps(multiplier, _mm512_set1_ps(-8388608.0f)));
  }
}

}  // namespace
}  // namespace octet::kernels

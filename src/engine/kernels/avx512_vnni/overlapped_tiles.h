// Products of pixels that are runs of dwords, while the tile before is finished: overlapped.cc, packed_pixels.cc.
//
// With few products for each sum the finish takes up to a third of the time, more with a residual and two roundings.
// Processors overlap products and finish only as far as they look ahead, and half as far where another thread shares
// the core. Tiles half as large as those of "direct" leave registers for the sums of the tile before: on AMD's Zen 5 a
// store takes a slot of the products, and sums that are stored to be finished are many.
#pragma once
#include "engine/kernels/avx512_vnni/register_finish.h"

namespace octet::kernels {
namespace {

constexpr int kPixels = 3, kVectors = 4;  // of a tile; vectors of 16 output channels
constexpr int64_t kTileChannels = kVectors * kChannelBlock;
constexpr int64_t kDwordsAtOnce = 4;
constexpr int64_t kLeastDwords = kPixels * kDwordsAtOnce;  // a pixel of the tile before is finished with every four

// What the tiles of a group of channels start from, and what finishes them.
struct alignas(64) TileFinish {
  int32_t start[kTileChannels];
  RegisterFinish codes;
};

// From the sums of one pixel to its codes, in steps that products of the next tile come between.
template <Sum S, Residual R>
struct PixelFinish {
  static constexpr int kSteps = 9;

  template <int Step>
  static OCTET_INLINE void step(const TileFinish& f, const MiddleLimits& limits, Z (&values)[kVectors],
                                const uint8_t* residual, uint8_t* out) {
    // A vector is completed when the next one, or the one after that, has begun.
    if constexpr (Step == 0) begin<0>(f, limits, values);
    if constexpr (Step == 1) begin<1>(f, limits, values);
    if constexpr (Step == 2) complete<0>(f, values, residual);
    if constexpr (Step == 3) begin<2>(f, limits, values);
    if constexpr (Step == 4) complete<1>(f, values, residual);
    if constexpr (Step == 5) begin<3>(f, limits, values);
    if constexpr (Step == 6) complete<2>(f, values, residual);
    if constexpr (Step == 7) complete<3>(f, values, residual);
    if constexpr (Step == 8) {
      pack_words(values[0], values[1]);
      pack_words(values[2], values[3]);
      pack_codes<S != Sum::kNone>(values[0], values[2], f.codes);
      asm volatile("vmovdqu64 %[a], (%[out])" : : [a] "v"(values[0]), [out] "r"(out) : "memory");
    }
  }

 private:
  template <int N>
  static OCTET_INLINE void begin(const TileFinish& f, const MiddleLimits& limits, Z (&values)[kVectors]) {
    scale_sums<N>(values[N], f.codes);
    if constexpr (S != Sum::kNone) round_middle(values[N], limits);
  }
  template <int N>
  static OCTET_INLINE void complete(const TileFinish& f, Z (&values)[kVectors], const uint8_t* residual) {
    if constexpr (S != Sum::kNone)
      add_residual<S == Sum::kTwiceFused>(values[N], scaled_residual<R>(residual + N * 16, f.codes), f.codes);
    round(values[N]);
  }
};

// By hand, all of it: the compiler would keep an address for every load, change the order and spill registers.
struct Products {
  Z acc[kPixels][kVectors];
  int64_t second = 0, third = 0;  // bytes from the first pixel of the tile to the others
  int64_t block = 0, block3 = 0;  // from one block of weights to the next, and three times that

  // kCopies: where loads are scarce. Elsewhere they cost nothing, and copies may take the units of the products (not
  // those of AMD's Zen 5).
  template <bool kCopies>
  OCTET_INLINE void start(const TileFinish& f) {
#pragma GCC unroll 3
    for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        if (kCopies && p > 0) {
          asm volatile("vmovdqa64 %1, %0" : "=v"(acc[p][v]) : "v"(acc[0][v]));
        } else {
          asm volatile("vmovdqa64 %1, %0" : "=v"(acc[p][v]) : "m"(*reinterpret_cast<const Z*>(f.start + v * 16)));
        }
  }
  template <int D>
  OCTET_INLINE void dword(const uint8_t* in, const int8_t* w) {
    Z weights[kVectors];
    asm volatile("vmovdqa64 %c2(%1), %0" : "=v"(weights[0]) : "r"(w), "i"(D * 64));
    asm volatile("vmovdqa64 %c3(%1,%2), %0" : "=v"(weights[1]) : "r"(w), "r"(block), "i"(D * 64));
    asm volatile("vmovdqa64 %c3(%1,%2,2), %0" : "=v"(weights[2]) : "r"(w), "r"(block), "i"(D * 64));
    asm volatile("vmovdqa64 %c3(%1,%2), %0" : "=v"(weights[3]) : "r"(w), "r"(block3), "i"(D * 64));
    Z codes;
    asm volatile("vpbroadcastd %c2(%1), %0" : "=v"(codes) : "r"(in), "i"(D * 4));
    add(acc[0], codes, weights);
    asm volatile("vpbroadcastd %c3(%1,%2), %0" : "=v"(codes) : "r"(in), "r"(second), "i"(D * 4));
    add(acc[1], codes, weights);
    asm volatile("vpbroadcastd %c3(%1,%2), %0" : "=v"(codes) : "r"(in), "r"(third), "i"(D * 4));
    add(acc[2], codes, weights);
  }

 private:
  static OCTET_INLINE void add(Z (&sums)[kVectors], const Z& codes, const Z (&weights)[kVectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      asm volatile("vpdpbusd %2, %1, %0" : "+v"(sums[v]) : "v"(codes), "v"(weights[v]));
  }
};

// The sums of the tile before.
template <typename Finish>
struct Unfinished {
  Z sums[kPixels][kVectors];
  MiddleLimits limits;
  const uint8_t* residual = nullptr;
  uint8_t* out = nullptr;
  int64_t residual_steps[kPixels] = {}, out_steps[kPixels] = {};  // to the next pixel
  static constexpr int kSteps = kPixels * Finish::kSteps;

  // Steps [S, End) of all pixels.
  template <int S, int End>
  OCTET_INLINE void steps(const TileFinish& f) {
    if constexpr (S < End) {
      constexpr int kPixel = S / Finish::kSteps;
      Finish::template step<S % Finish::kSteps>(f, limits, sums[kPixel], residual, out);
      if constexpr ((S + 1) % Finish::kSteps == 0) {
        residual += residual_steps[kPixel], out += out_steps[kPixel];
        asm("" : "+r"(residual), "+r"(out));
      }
      steps<S + 1, End>(f);
    }
  }
};

// Where the dwords of a tile and their weights are, and weights to fetch meanwhile.
struct Cursor {
  const uint8_t* in;
  const int8_t *weights, *ahead;
};

// Four dwords of products, N times, and the finish of the tile before evenly between them.
template <int N, bool kFinish, typename Finish, int I = 0>
OCTET_INLINE void four_dwords(Products& m, Cursor& at, const TileFinish& f, Unfinished<Finish>& before) {
  if constexpr (I < N) {
    const auto dword = [&]<int D>() __attribute__((always_inline)) {
      constexpr int kAll = Unfinished<Finish>::kSteps, kNow = I * 4 + D;
      m.dword<D>(at.in, at.weights);
      if constexpr (kFinish) before.template steps<kAll * kNow / (4 * N), kAll*(kNow + 1) / (4 * N)>(f);
    };
    dword.template operator()<0>();
    __builtin_prefetch(at.ahead, 0, 2);
    dword.template operator()<1>();
    dword.template operator()<2>();
    dword.template operator()<3>();
    at.in += 16, at.weights += 256, at.ahead += 64;
    four_dwords<N, kFinish, Finish, I + 1>(m, at, f, before);
  }
}

// Rows of pixels, by 64 output channels. Distances in bytes.
struct Pixels {
  const uint8_t* in = nullptr;
  const uint8_t* residual = nullptr;
  uint8_t* out = nullptr;
  int64_t in_step = 0, residual_step = 0, out_step = 0;  // from one pixel to the next
  int64_t in_gap = 0, residual_gap = 0, out_gap = 0;     // besides, from the last pixel of a row to the next row
  int64_t width = 0, count = 0;                          // pixels of a row, of all rows: a tile or more
};

// The weights of 64 output channels.
struct Weights {
  const int8_t* begin = nullptr;
  int64_t block_bytes = 0, dwords = 0;
  const int8_t *ahead = nullptr, *ahead_end = nullptr;  // weights to fetch meanwhile
};

// kSixteen: of sixteen dwords, without gaps between rows; there nearly all loads are taken, also by addresses.
template <bool kSixteen, typename Finish>
void run_pixels(const TileFinish& f, const Pixels& pixels, Weights& w) {
  constexpr int kFinishing = kSixteen ? 4 : kPixels;  // times four dwords
  Products m;
  m.block = w.block_bytes, m.block3 = 3 * w.block_bytes;
  m.second = pixels.in_step, m.third = 2 * pixels.in_step;
  Unfinished<Finish> before;
  before.limits = load_limits(f.codes);
  int64_t row = 0, column = 0;
  for (int64_t x = 0; x < pixels.count; x += kPixels, column += kPixels) {
    const bool last = x > pixels.count - kPixels;  // it may repeat pixels of the one before
    if (last) x = pixels.count - kPixels;
    int64_t second_row = 0, third_row = 0;  // behind that of the first pixel
    if constexpr (!kSixteen) {
      if (last) row = x / pixels.width, column = x % pixels.width;
      if (column >= pixels.width) ++row, column -= pixels.width;
      second_row = column + 1 >= pixels.width, third_row = column + 2 >= pixels.width;
      m.second = pixels.in_step + second_row * pixels.in_gap, m.third = 2 * pixels.in_step + third_row * pixels.in_gap;
    }
    m.template start<kSixteen>(f);
    Cursor at{pixels.in + x * pixels.in_step + row * pixels.in_gap, w.begin, w.ahead};
    if (x > 0) {
      four_dwords<kFinishing, true>(m, at, f, before);
    } else {
      four_dwords<kFinishing, false>(m, at, f, before);
    }
    if constexpr (!kSixteen) {
      for (int64_t left = w.dwords / kDwordsAtOnce - kFinishing; left > 0; --left)
        four_dwords<1, false>(m, at, f, before);
      for (int64_t left = w.dwords % kDwordsAtOnce; left > 0; --left, at.in += 4, at.weights += 64)
        m.template dword<0>(at.in, at.weights);
    }
    if (at.ahead < w.ahead_end) w.ahead = at.ahead;
#pragma GCC unroll 3
    for (int p = 0; p < kPixels; ++p)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) before.sums[p][v] = m.acc[p][v];
    before.residual = pixels.residual + x * pixels.residual_step + row * pixels.residual_gap;
    before.out = pixels.out + x * pixels.out_step + row * pixels.out_gap;
    for (int p = 0; p < 2; ++p) {
      const int64_t ends = p == 0 ? second_row : third_row - second_row;
      before.residual_steps[p] = pixels.residual_step + ends * pixels.residual_gap;
      before.out_steps[p] = pixels.out_step + ends * pixels.out_gap;
    }
  }
  before.template steps<0, Unfinished<Finish>::kSteps>(f);
}

inline bool overlapped_finish_applies(const Epilogue& e) {
  if (e.out.data == nullptr || e.table || !sums_are_bounded(e)) return false;
  return e.residual.data == nullptr || (e.rounds_twice && e.out.zero_point == 0 && e.lo == 0 && e.hi == 255);
}

using RunPixels = void(const TileFinish&, const Pixels&, Weights&);

template <bool kSixteen, Sum S>
RunPixels* kernel_of(Residual residual) {
  switch (residual) {
    case Residual::kWidened:
      return run_pixels<kSixteen, PixelFinish<S, Residual::kWidened>>;
    case Residual::kWidenedNoZeroPoint:
      return run_pixels<kSixteen, PixelFinish<S, Residual::kWidenedNoZeroPoint>>;
    case Residual::kOnTwo23:
      return run_pixels<kSixteen, PixelFinish<S, Residual::kOnTwo23>>;
    default:
      return run_pixels<kSixteen, PixelFinish<S, Residual::kOnTwo23NoZeroPoint>>;
  }
}
// Where overlapped_finish_applies().
template <bool kSixteen>
RunPixels* kernel_of(const Epilogue& e) {
  if (e.residual.data == nullptr) return run_pixels<kSixteen, PixelFinish<Sum::kNone, Residual::kWidened>>;
  const Residual residual = fastest_residual(e);
  return e.sum_fuses ? kernel_of<kSixteen, Sum::kTwiceFused>(residual) : kernel_of<kSixteen, Sum::kTwice>(residual);
}

// From the start of the sums and the multipliers of blocks b, b + 1 ...
OCTET_INLINE void load_channels(const ConvArgs& a, int64_t b, TileFinish& f) {
  for (int v = 0; v < kVectors; ++v) {
    _mm512_store_si512(f.start + v * 16, _mm512_loadu_si512(a.acc_init + (b + v) * 16));
    _mm512_store_ps(f.codes.multiplier + v * 16, _mm512_loadu_ps(a.epilogue.multiplier + (b + v) * 16));
  }
}

}  // namespace
}  // namespace octet::kernels

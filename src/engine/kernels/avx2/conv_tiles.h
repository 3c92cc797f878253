// Register blocking of INT8 convolutions with 256-bit vectors: some output pixels x 16 output channels, with the
// epilogue applied to the sums in registers. The pixels need not be neighbors, so tiles run over the ends of rows. Dot
// supplies the product of 4 bytes of input with the weights of 8 output channels:
//   static Y add(Y sum, Y input, Y weights, Y ones);
// and may have a kPixelTerm: the dword in front of each pixel's input is added to all its sums.
#pragma once
#include "engine/kernels/avx2/finish.h"

namespace octet::kernels {
namespace {

constexpr int kTilePixels = 6;  // 12 sums, two vectors of weights, one of input, one product: all 16 registers

// Where an output pixel's data are, in bytes from a pixel that the tiles of a call have in common.
struct alignas(16) PixelPlace {
  int32_t in = 0, out = 0, residual = 0;
  int32_t start = 0;  // of its sums, in entries from acc_init
};

// Pixels of any rows x one block of output channels. A step is 4 bytes of input and 64 of weights.
struct PixelTile {
  int64_t kernel_h, segments_per_row, steps, tap_row_step, tap_step;
  int64_t panel_skip;  // bytes of weights after each segment that have no step
  const uint8_t* in;   // of the first tap, at the block's first channel
  const int8_t* panel;
  const int32_t* acc_init;
  const Finish* finish;
  int64_t channel;
  uint8_t* out;             // of the first pixel and channel
  const uint8_t* residual;  // alike
  // Short segments: where every step of all of them reads its input, in bytes, and how many these are. One loop, as the
  // ends of many short ones are not foreseen.
  const int32_t* offsets = nullptr;
  int64_t all_steps = 0;

  // At the outputs of the block of 16 that starts with `first_channel`, from the row `y` of image `n`.
  void aim(const Epilogue& e, int64_t n, int64_t y, int64_t first_channel) {
    const auto at = [&](const auto& t) {
      return t.data ? t.data + n * t.image_stride + y * t.row_stride + first_channel : nullptr;
    };
    channel = first_channel, out = at(e.out), residual = at(e.residual);
  }
};

// What the sums of all pixels of a block start with; `relu` as for pixel_tiles().
inline void start_sums(const ConvArgs& a, int64_t block, bool relu, int32_t* starts) {
  const Y more = _mm256_set1_epi32(relu ? kBitsOfTwo23 : 0);
  for (int half = 0; half < 16; half += 8)
    store32(starts + half, _mm256_add_epi32(load32(a.acc_init + block * 16 + half), more));
}

// A Dot for 1x1 kernels that multiplies 8 bytes of input at once:
//   static Y add(Y sum, const Y (&input)[2], Y first_weights, Y second_weights, Y ones);
template <typename Dot>
constexpr bool kTwoDwords = requires {
  Dot::kTwoDwords;
};

template <typename Dot, int P, int V>
OCTET_INLINE void multiply_two_dwords(const uint8_t* (&x)[P], const int8_t* w, int64_t steps, Y ones, Y (&sum)[P][V]) {
  int64_t at = 0;
  for (const int8_t* end = w + steps * 64; w != end; w += 128, at += 8) {
    asm("" : "+r"(at));  // as in multiply_tile()
    Y first[V], second[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) first[v] = load32(w + 32 * v), second[v] = load32(w + 64 + 32 * v);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      int32_t dwords[2];
      std::memcpy(dwords, x[p] + at, 8);
      const Y input[2] = {_mm256_set1_epi32(dwords[0]), _mm256_set1_epi32(dwords[1])};
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[p][v] = Dot::add(sum[p][v], input, first[v], second[v], ones);
    }
  }
}

// P pixels x V vectors of 8 output channels. kStraight: the sums are finished in registers.
template <typename Dot, int P, int V, Sum S, bool kStraight>
OCTET_INLINE void multiply_tile(const PixelTile& t, const PixelPlace* places, int64_t first_pixel) {
  Y sum[P][V];
  const uint8_t* x[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    x[p] = t.in + places[p].in;
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      sum[p][v] = load32(t.acc_init + places[p].start + 8 * v);
      if constexpr (requires { Dot::kPixelTerm; }) {
        int32_t term;
        std::memcpy(&term, x[p] - 4, 4);
        sum[p][v] = _mm256_add_epi32(sum[p][v], _mm256_set1_epi32(term));
      }
    }
  }
  const int8_t* w = t.panel;
  Y ones = _mm256_set1_epi16(1);
  // In a register, or dropped. The loads of two dwords at once leave room for it, the registers do not.
  if constexpr (!kTwoDwords<Dot>) asm("" : "+x"(ones));
  if constexpr (kTwoDwords<Dot>) {
    multiply_two_dwords<Dot>(x, w, t.steps, ones, sum);
  } else {
    const auto step = [&](int64_t at) __attribute__((always_inline)) {
      Y weights[V];
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) weights[v] = load32(w + 32 * v);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        int32_t four;
        std::memcpy(&four, x[p] + at, 4);
        const Y input = _mm256_set1_epi32(four);
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) sum[p][v] = Dot::add(sum[p][v], input, weights[v], ones);
      }
    };
    if (t.offsets != nullptr) {
      for (const int32_t *at = t.offsets, *end = at + t.all_steps; at != end; ++at, w += 64) step(*at);
    } else {
      for (int64_t y = 0; y < t.kernel_h; ++y)
        for (int64_t s = 0; s < t.segments_per_row; ++s, w += t.panel_skip) {
          int64_t at = y * t.tap_row_step + s * t.tap_step;
          for (const int8_t* end = w + t.steps * 64; w != end; w += 64, at += 4) {
            asm("" : "+r"(at));  // one index for all pixels: as differences of pointers they cost an addition each
            step(at);
          }
        }
    }
  }
  if constexpr (kStraight) {
    const auto value = [&](int p, int v) __attribute__((always_inline)) {
      if (v >= V) return _mm256_setzero_si256();
      return t.finish->value<S, true>(
          sum[p][v < V ? v : 0], t.channel + v * 8,
          S == Sum::kNone || S == Sum::kRelu ? nullptr : t.residual + places[p].residual + v * 8);
    };
    constexpr int kPairs = (P + 1) / 2;
    Y codes[kPairs];
#pragma GCC unroll 4
    for (int i = 0; i < kPairs; ++i) {
      const int p = 2 * i, q = p + 1 < P ? p + 1 : p;
      codes[i] = t.finish->template pack<S>(value(p, 0), value(p, 1), value(q, 0), value(q, 1));
    }
    if (S != Sum::kRelu && t.finish->has_table()) t.finish->look_up(codes, kPairs);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      uint8_t* out = t.out + places[p].out;
      store16(out, p % 2 ? _mm256_extracti128_si256(codes[p / 2], 1) : _mm256_castsi256_si128(codes[p / 2]));
    }
  } else {
    alignas(32) int32_t acc[P * 16] = {};
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) store32(acc + p * 16 + v * 8, sum[p][v]);
    for (int p = 0; p < P; ++p)
      t.finish->pixel(acc + p * 16, t.channel, t.out ? t.out + places[p].out : nullptr,
                      t.residual ? t.residual + places[p].residual : nullptr, first_pixel + p);
  }
}

// `tiles` of them, one after the other.
template <typename Dot, int P, int V, Sum S, bool kStraight>
void multiply_tiles(const PixelTile& t, const PixelPlace* places, int64_t tiles, int64_t first_pixel) {
  for (; tiles > 0; --tiles, places += P, first_pixel += P)
    multiply_tile<Dot, P, V, S, kStraight>(t, places, first_pixel);
}

using TileFunction = void(const PixelTile& t, const PixelPlace* places, int64_t tiles, int64_t first_pixel);

template <typename Dot, int V, Sum S, bool kStraight>
constexpr TileFunction* kPixelTiles[kTilePixels + 1] = {nullptr,
                                                        multiply_tiles<Dot, 1, V, S, kStraight>,
                                                        multiply_tiles<Dot, 2, V, S, kStraight>,
                                                        multiply_tiles<Dot, 3, V, S, kStraight>,
                                                        multiply_tiles<Dot, 4, V, S, kStraight>,
                                                        multiply_tiles<Dot, 5, V, S, kStraight>,
                                                        multiply_tiles<Dot, 6, V, S, kStraight>};

// By number of pixels. `relu`: relu_shortcut(), and the sums start with kBitsOfTwo23.
template <typename Dot, int V>
TileFunction* const* pixel_tiles(const Finish& finish, bool relu = false) {
  if (relu && finish.straight()) return kPixelTiles<Dot, V, Sum::kRelu, true>;
  if (!finish.straight()) return kPixelTiles<Dot, V, Sum::kNone, false>;
  switch (finish.sum()) {
    case Sum::kOnce:
      return kPixelTiles<Dot, V, Sum::kOnce, true>;
    case Sum::kTwice:
      return kPixelTiles<Dot, V, Sum::kTwice, true>;
    default:
      return kPixelTiles<Dot, V, Sum::kNone, true>;
  }
}

// All pixels of `places` for one block of output channels: tiles of `whole` pixels and a rest, or where that would be
// one pixel, one tile less. `first_pixel` counts over n * h * w: float tensors are dense.
inline void for_each_tile(const PixelTile& tile, TileFunction* const* functions, const PixelPlace* places,
                          int64_t pixels, int64_t first_pixel, int64_t whole = kTilePixels) {
  const auto run = [&](int64_t at, int64_t size, int64_t tiles) {
    if (tiles > 0) functions[size](tile, places + at, tiles, first_pixel + at);
  };
  const int64_t most = pixels / whole, rest = pixels % whole;
  const bool one_less = rest == 1 && most > 0;
  const int64_t tiles = one_less ? most - 1 : most, at = tiles * whole;
  run(0, whole, tiles);
  if (one_less) {
    run(at, whole / 2 + 1, 1);
    run(at + whole / 2 + 1, whole - whole / 2, 1);
  } else if (rest > 0) {
    run(at, rest, 1);
  }
}

}  // namespace
}  // namespace octet::kernels

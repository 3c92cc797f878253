// Depthwise 3x3: two passes along the strip, each for half of the channels (the low or the high eight of every sixteen,
// as vpunpck takes them). For half of them all weights and multipliers stay in registers; as operands from memory they
// would take more time than the products. The first pass leaves 16-bit codes, the second packs them with its own.
#pragma once
#include "engine/kernels/avx512_vnni/depthwise/strip.h"

namespace octet::kernels {
namespace {

constexpr int64_t kMaxStrip3 = 64;  // pixels whose 16-bit codes wait for the second pass

// Weights of 3x3: [output row of a pair][kx], a quad of the rows each. Output row 1 uses the last three of four.
void make_block3(const BlockMaker& m, Block& b) {
  for (int64_t kx = 0; kx < 3; ++kx) {
    m.set_weights(b.weights[kx], m.tap(0, kx), m.tap(1, kx), m.tap(2, kx), _mm512_setzero_si512());
    for (int g = 0; g < 4; ++g) b.weights[3 + kx][g] = _mm512_slli_epi32(b.weights[kx][g], 8);
  }
}

// 32 channels: half of a quad, of sums and of a block's numbers.
struct Pair {
  Z v[2];
};

// What the passes for stride 1 and 2 share. `Rows` output rows at a time.
template <int Parts, Finish F, int Rows, int Half>
struct Pass3 {
  const Block& b;
  const Strip& s;
  const Constants& k;
  const uint8_t* table;
  Z* words;  // [pixel][row]: written by the first pass, read by the second
  const uint8_t* in = nullptr;
  uint8_t* out = nullptr;
  Z weights[3 * Rows][2];
  __m512 multiplier[2], offset[2];

  // By hand, so that the compiler does not load them again where they are used.
  OCTET_INLINE static Z keep(const void* p) {
    Z v;
    asm volatile("vmovdqa64 %1, %0" : "=v"(v) : "m"(*static_cast<const Z*>(p)));
    return v;
  }
  OCTET_INLINE void load() {
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
#pragma GCC unroll 6
      for (int i = 0; i < 3 * Rows; ++i) weights[i][g] = keep(&b.weights[i][2 * Half + g]);
      multiplier[g] = _mm512_castsi512_ps(keep(&b.multiplier[2 * Half + g]));
      offset[g] = _mm512_castsi512_ps(keep(&b.offset[2 * Half + g]));
    }
    in = s.in, out = s.out;
  }
  // Three (or four) rows of the next column.
  OCTET_INLINE Pair column() {
    const uint8_t* const third = in + 2 * s.in_row;
    const Z t0 = load_parts<Parts>(in, b), t1 = load_parts<Parts>(in + s.in_row, b), t2 = load_parts<Parts>(third, b);
    const Z t3 = Rows == 2 ? load_parts<Parts>(third + s.in_row, b) : t2;
    in += s.in_pixel;
    const Z low = Half == 0 ? _mm512_unpacklo_epi8(t0, t1) : _mm512_unpackhi_epi8(t0, t1);
    const Z high = Half == 0 ? _mm512_unpacklo_epi8(t2, t3) : _mm512_unpackhi_epi8(t2, t3);
    return {{_mm512_unpacklo_epi16(low, high), _mm512_unpackhi_epi16(low, high)}};
  }
  // The second row copies the first: both a load and too many copies at a time cost something.
  OCTET_INLINE void begin(Z (&acc)[Rows][2]) {
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (int g = 0; g < 2; ++g)
        if (r == 0) {
          asm volatile("vmovdqa64 %1, %0" : "=v"(acc[r][g]) : "m"(b.start[2 * Half + g]));
        } else {
          asm volatile("vmovdqa64 %1, %0" : "=v"(acc[r][g]) : "v"(acc[0][g]));
        }
  }
  OCTET_INLINE void add(Z (&acc)[Rows][2], const Pair& x, int kx) {
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (int g = 0; g < 2; ++g) acc[r][g] = _mm512_dpbusd_epi32(acc[r][g], x.v[g], weights[3 * r + kx][g]);
  }
  // The next pixel's codes.
  OCTET_INLINE void store(const Z (&acc)[Rows][2]) {
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) {
      const Z mine = words_of<F>(acc[r][0], acc[r][1], multiplier, offset, k);
      if constexpr (Half == 0) {
        words[r] = mine;
      } else {
        store_parts<Parts>(out + r * s.out_row, codes_of_words<F>(words[r], mine, k, table), b);
      }
    }
    words += Rows;
    out += s.out_pixel;
  }
};

// Stride 1. The sums of output pixel x are in acc[x % 2]: the column that is the last of one pixel is the first of the
// next but one.
template <int Parts, Finish F, int Rows, int Half>
struct Walk3 : Pass3<Parts, F, Rows, Half> {
  Z acc[2][Rows][2];

  // Takes a column: the last of the pixel in acc[Slot], the middle one of the other, the first of a new pixel.
  template <int Slot, bool Last, bool Middle, bool First>
  OCTET_INLINE void step() {
    const Pair x = this->column();
    if constexpr (Middle) this->add(acc[1 - Slot], x, 1);
    if constexpr (Last) {
      this->add(acc[Slot], x, 2);
      this->store(acc[Slot]);
    }
    if constexpr (First) {
      this->begin(acc[Slot]);
      this->add(acc[Slot], x, 0);
    }
  }
  template <int Slot>
  OCTET_INLINE void finish(int64_t pixels) {
    if (pixels > 1) {
      step<Slot, true, true, false>();
      step<1 - Slot, true, false, false>();
    } else {
      step<Slot, true, false, false>();
    }
  }
  OCTET_INLINE void run() {
    this->load();
    step<0, false, false, true>();
    if (this->s.length == 1) {
      step<1, false, true, false>();
      return finish<0>(1);
    }
    step<1, false, true, true>();
    int64_t left = this->s.length;
    for (; left >= 4; left -= 2) {
      step<0, true, true, true>();
      step<1, true, true, true>();
    }
    if (left == 2) return finish<0>(2);
    step<0, true, true, true>();
    finish<1>(2);
  }
};

// Stride 2: the last column of a pixel is the first of the next.
template <int Parts, Finish F, int Rows, int Half>
struct Walk3Stride2 : Pass3<Parts, F, Rows, Half> {
  static_assert(Rows == 1);
  OCTET_INLINE void run() {
    this->load();
    Z acc[1][2];
    this->begin(acc);
    this->add(acc, this->column(), 0);
    for (int64_t left = this->s.length; left > 0; --left) {
      this->add(acc, this->column(), 1);
      const Pair shared = this->column();
      this->add(acc, shared, 2);
      this->store(acc);
      this->begin(acc);
      this->add(acc, shared, 0);
    }
  }
};

template <template <int, Finish, int, int> typename Walk, int Parts, Finish F, int Rows, int Stride>
void walk_twice(const Block& b, const Strip& whole, const Constants& k, const uint8_t* table) {
  Z words[kMaxStrip3 * Rows];
  const int64_t pieces = (whole.length + kMaxStrip3 - 1) / kMaxStrip3;
  const int64_t length = (whole.length + pieces - 1) / pieces;
  for (int64_t x = 0; x < whole.length; x += length) {
    Strip s = whole;
    s.in += x * Stride * s.in_pixel, s.out += x * s.out_pixel, s.length = smaller(length, whole.length - x);
    Walk<Parts, F, Rows, 0> first{{b, s, k, table, words}};
    first.run();
    Walk<Parts, F, Rows, 1> second{{b, s, k, table, words}};
    second.run();
  }
}

template <int Parts, Finish F, int Rows>
void walk3(const Block& b, const Strip& s, const Constants& k, const uint8_t* table) {
  walk_twice<Walk3, Parts, F, Rows, 1>(b, s, k, table);
}

template <int Parts, Finish F>
void walk3_stride2(const Block& b, const Strip& s, const Constants& k, const uint8_t* table) {
  walk_twice<Walk3Stride2, Parts, F, 1, 2>(b, s, k, table);
}

}  // namespace
}  // namespace octet::kernels

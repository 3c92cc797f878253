// Depthwise 5x5: the quads of every input column are built once, for all output pixels that it feeds.
#pragma once
#include "engine/kernels/avx512_vnni/depthwise/strip.h"

namespace octet::kernels {
namespace {

// By hand, because the compiler would load many weights early and then have no registers for the sums.
OCTET_INLINE void add_quad(Z (&acc)[4], const Quad& x, const Z (&w)[4]) {
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) asm("vpdpbusd %2, %1, %0" : "+v"(acc[g]) : "v"(x.v[g]), "m"(w[g]));
}

// Loads, not copies of registers: only few register moves at a time are free.
OCTET_INLINE void begin(Z (&acc)[4], const Block& b) {
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) asm("vmovdqa64 %1, %0" : "=v"(acc[g]) : "m"(b.start[g]));
}

// Four rows of one column.
template <int Parts>
OCTET_INLINE Quad column(const uint8_t* p, int64_t row, const Block& b) {
  return interleave(load_parts<Parts>(p, b), load_parts<Parts>(p + row, b), load_parts<Parts>(p + 2 * row, b),
                    load_parts<Parts>(p + 3 * row, b));
}

// Weights of 5x5: [kx], a quad of the first four rows each; then the fifth row as quads of four columns that begin
// d = -4 .. 3 columns after the first tap of the pixel, at 5 + 4 + d.
void make_block5(const BlockMaker& m, Block& b) {
  for (int64_t kx = 0; kx < 5; ++kx)
    m.set_weights(b.weights[kx], m.tap(0, kx), m.tap(1, kx), m.tap(2, kx), m.tap(3, kx));
  const bool odd = m.args.geometry.stride_w == 1;
  for (int64_t d = -4; d < 4; d += odd ? 1 : 2)
    m.set_weights(b.weights[9 + d], m.tap(4, -d), m.tap(4, 1 - d), m.tap(4, 2 - d), m.tap(4, 3 - d));
}

// Sums of output pixel x are in acc[x % 4] (stride 1) or acc[x % 2].
template <int Parts, Finish F>
struct Walk5 {
  const Block& b;
  const Strip& s;
  const Constants& k;
  const uint8_t* table;
  int64_t last;  // column
  Quad fifth;    // columns 4j .. 4j + 3 of the fifth row
  Z acc[4][4];

  OCTET_INLINE const uint8_t* at(int64_t c) const { return s.in + smaller(c, last) * s.in_pixel; }
  OCTET_INLINE void load_fifth(int64_t c) {
    const int64_t down = 4 * s.in_row;
    fifth = interleave(load_parts<Parts>(at(c) + down, b), load_parts<Parts>(at(c + 1) + down, b),
                       load_parts<Parts>(at(c + 2) + down, b), load_parts<Parts>(at(c + 3) + down, b));
  }
  OCTET_INLINE bool exists(int64_t x) const { return static_cast<uint64_t>(x) < static_cast<uint64_t>(s.length); }
  OCTET_INLINE void store(int64_t x, const Z (&sum)[4]) {
    store_parts<Parts>(s.out + x * s.out_pixel, codes<F>(sum, b, k, table), b);
  }

  // Stride 1, column c = 4j + Phase: the last of output pixel c - 4, the first of pixel c. With Edge some of the
  // pixels are outside the strip.
  template <int Phase, bool Edge>
  OCTET_INLINE void step1(int64_t c) {
    if constexpr (Edge)
      if (c > last) return;
    if constexpr (Phase == 0) load_fifth(c);
    const Quad x = column<Parts>(at(c), s.in_row, b);
#pragma GCC unroll 3
    for (int i = 1; i < 4; ++i)
      if (!Edge || exists(c - 4 + i)) add_quad(acc[(Phase + i) % 4], x, b.weights[4 - i]);
    if (!Edge || exists(c - 4)) {
      add_quad(acc[Phase], x, b.weights[4]);
      add_quad(acc[Phase], fifth, b.weights[5 + Phase]);
      store(c - 4, acc[Phase]);
    }
    if (!Edge || exists(c)) {
      begin(acc[Phase], b);
      add_quad(acc[Phase], x, b.weights[0]);
      add_quad(acc[Phase], fifth, b.weights[9 + Phase]);
    }
  }
  template <bool Edge>
  OCTET_INLINE void four_steps1(int64_t c) {
    step1<0, Edge>(c);
    step1<1, Edge>(c + 1);
    step1<2, Edge>(c + 2);
    step1<3, Edge>(c + 3);
  }
  void run1() {
    last = s.length + 3;
    int64_t c = 0;
    for (; c < 4; c += 4) four_steps1<true>(c);
    for (; c + 3 < s.length; c += 4) four_steps1<false>(c);
    for (; c <= last; c += 4) four_steps1<true>(c);
  }

  // Stride 2, columns c = 4j .. 4j + 3: the last columns of output pixels 2j - 2 and 2j - 1, the first of the next two.
  void run2() {
    last = 2 * s.length + 2;
    for (int64_t c = 0; c <= last; c += 4) {
      const int64_t first = c / 2 - 2;
      load_fifth(c);
      Quad x = column<Parts>(at(c), s.in_row, b);
      if (c > 0) {
        add_quad(acc[0], x, b.weights[4]);
        add_quad(acc[0], fifth, b.weights[5]);
        store(first, acc[0]);
        add_quad(acc[1], x, b.weights[2]);
        add_quad(acc[1], fifth, b.weights[7]);
      }
      begin(acc[0], b);
      add_quad(acc[0], x, b.weights[0]);
      add_quad(acc[0], fifth, b.weights[9]);
      x = column<Parts>(at(c + 1), s.in_row, b);
      if (c > 0) add_quad(acc[1], x, b.weights[3]);
      add_quad(acc[0], x, b.weights[1]);
      x = column<Parts>(at(c + 2), s.in_row, b);
      if (exists(first + 1)) {
        add_quad(acc[1], x, b.weights[4]);
        store(first + 1, acc[1]);
      }
      add_quad(acc[0], x, b.weights[2]);
      begin(acc[1], b);
      add_quad(acc[1], x, b.weights[0]);
      add_quad(acc[1], fifth, b.weights[11]);
      x = column<Parts>(at(c + 3), s.in_row, b);
      add_quad(acc[0], x, b.weights[3]);
      add_quad(acc[1], x, b.weights[1]);
    }
  }
};

template <int Parts, Finish F, int Stride>
void walk5(const Block& b, const Strip& s, const Constants& k, const uint8_t* table) {
  Walk5<Parts, F> w{b, s, k, table, 0, {}, {}};
  if constexpr (Stride == 1) {
    w.run1();
  } else {
    w.run2();
  }
}

}  // namespace
}  // namespace octet::kernels

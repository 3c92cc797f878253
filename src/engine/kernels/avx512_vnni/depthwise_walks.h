// The depthwise kernels of real networks: 3x3 and 5x5, strides 1 and 2. Each walks along a strip of output pixels and
// builds the quads of every input column once, for all output pixels that it feeds. On Intel cores vpunpck runs once
// a cycle and everything else twice, so both the number of shuffles and the sum of all vector instructions count:
//
//   per 64 outputs          shuffles   dot products
//   3x3 stride 1, 2 rows       4           12         quads = 4 input rows, shared by 3 columns and 2 rows
//   3x3 stride 1, 1 row        8           12         quads = 3 input rows
//   3x3 stride 2              16           12
//   5x5 stride 1              10           28         quads = 4 input rows; the fifth row in quads of 4 columns
//   5x5 stride 2              20           28
#pragma once
#include "engine/kernels/avx512_vnni/depthwise_block.h"

namespace octet::kernels {
namespace {

// One strip: `length` neighbouring output pixels of one row (or two), in every part of the vector.
struct Strip {
  const uint8_t* in = nullptr;  // first tap of the first pixel
  int64_t in_row = 0, in_pixel = 0;
  uint8_t* out = nullptr;
  int64_t out_row = 0, out_pixel = 0;
  int64_t length = 0;
};

template <int Parts>
OCTET_INLINE Z load_parts(const uint8_t* p, const Block& b) {
  if constexpr (Parts == 1) {
    return _mm512_loadu_si512(p);
  } else if constexpr (Parts == 2) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + b.in_part[1])), 1);
  } else {
    Z v = _mm512_inserti32x4(_mm512_castsi128_si512(load16(p)), load16(p + b.in_part[1]), 1);
    v = _mm512_inserti32x4(v, load16(p + b.in_part[2]), 2);
    return _mm512_inserti32x4(v, load16(p + b.in_part[3]), 3);
  }
}

template <int Parts>
OCTET_INLINE void store_parts(uint8_t* p, Z v, const Block& b) {
  if constexpr (Parts == 1) {
    if (b.mask == ~0ull) return _mm512_storeu_si512(p, v);
    _mm512_mask_storeu_epi8(p, b.mask, v);
  } else if constexpr (Parts == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + b.out_part[1]), _mm512_extracti64x4_epi64(v, 1));
  } else {
    store16(p, _mm512_castsi512_si128(v));
    store16(p + b.out_part[1], _mm512_extracti32x4_epi32(v, 1));
    store16(p + b.out_part[2], _mm512_extracti32x4_epi32(v, 2));
    store16(p + b.out_part[3], _mm512_extracti32x4_epi32(v, 3));
  }
}

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

// Three (or four) rows of one column.
template <int Parts, int Rows>
OCTET_INLINE Quad column(const uint8_t* p, int64_t row, const Block& b) {
  const Z t2 = load_parts<Parts>(p + 2 * row, b);
  return interleave(load_parts<Parts>(p, b), load_parts<Parts>(p + row, b), t2,
                    Rows == 4 ? load_parts<Parts>(p + 3 * row, b) : t2);
}

// Weights of 3x3: [output row of a pair][kx], a quad of the rows each. Output row 1 uses the last three of four.
void make_block3(const BlockMaker& m, Block& b) {
  for (int64_t kx = 0; kx < 3; ++kx) {
    m.set_weights(b.weights[kx], m.tap(0, kx), m.tap(1, kx), m.tap(2, kx), _mm512_setzero_si512());
    for (int g = 0; g < 4; ++g) b.weights[3 + kx][g] = _mm512_slli_epi32(b.weights[kx][g], 8);
  }
}

// 3x3, stride 1, `Rows` output rows at a time. The sums of output pixel x are in acc[x % 2]: the column that is the
// last of one pixel is the first of the next but one.
template <int Parts, Finish F, int Rows>
struct Walk3 {
  const Block& b;
  const Strip& s;
  const Constants& k;
  const uint8_t* table;
  const uint8_t* in;
  uint8_t* out;
  Z acc[2][Rows][4];

  OCTET_INLINE void add(Z (&sums)[Rows][4], const Quad& x, int kx) {
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) add_quad(sums[r], x, b.weights[3 * r + kx]);
  }
  // Takes a column: the last of the pixel in acc[Slot], the middle one of the other, the first of a new pixel.
  template <int Slot, bool Last, bool Middle, bool First>
  OCTET_INLINE void step() {
    const Quad x = column < Parts, Rows == 2 ? 4 : 3 > (in, s.in_row, b);
    in += s.in_pixel;
    if constexpr (Middle) add(acc[1 - Slot], x, 1);
    if constexpr (Last) {
      add(acc[Slot], x, 2);
      Z q[Rows];
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) q[r] = codes<F>(acc[Slot][r], b, k, table);
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) store_parts<Parts>(out + r * s.out_row, q[r], b);
      out += s.out_pixel;
    }
    if constexpr (First) {
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) begin(acc[Slot][r], b);
      add(acc[Slot], x, 0);
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
    in = s.in, out = s.out;
    step<0, false, false, true>();
    if (s.length == 1) {
      step<1, false, true, false>();
      return finish<0>(1);
    }
    step<1, false, true, true>();
    int64_t left = s.length;
    for (; left >= 4; left -= 2) {
      step<0, true, true, true>();
      step<1, true, true, true>();
    }
    if (left == 2) return finish<0>(2);
    step<0, true, true, true>();
    finish<1>(2);
  }
};

template <int Parts, Finish F, int Rows>
void walk3(const Block& b, const Strip& s, const Constants& k, const uint8_t* table) {
  Walk3<Parts, F, Rows> w{b, s, k, table, nullptr, nullptr, {}};
  w.run();
}

template <int Parts, Finish F>
void walk3_stride2(const Block& b, const Strip& s, const Constants& k, const uint8_t* table) {
  const uint8_t* p = s.in;
  uint8_t* out = s.out;
  Z acc[4];
  begin(acc, b);
  add_quad(acc, column<Parts, 3>(p, s.in_row, b), b.weights[0]);
  for (int64_t x = 0; x < s.length; ++x, out += s.out_pixel) {
    add_quad(acc, column<Parts, 3>(p += s.in_pixel, s.in_row, b), b.weights[1]);
    const Quad shared = column<Parts, 3>(p += s.in_pixel, s.in_row, b);
    add_quad(acc, shared, b.weights[2]);
    const Z q = codes<F>(acc, b, k, table);
    begin(acc, b);
    add_quad(acc, shared, b.weights[0]);
    store_parts<Parts>(out, q, b);
  }
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
    const Quad x = column<Parts, 4>(at(c), s.in_row, b);
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
      Quad x = column<Parts, 4>(at(c), s.in_row, b);
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
      x = column<Parts, 4>(at(c + 1), s.in_row, b);
      if (c > 0) add_quad(acc[1], x, b.weights[3]);
      add_quad(acc[0], x, b.weights[1]);
      x = column<Parts, 4>(at(c + 2), s.in_row, b);
      if (exists(first + 1)) {
        add_quad(acc[1], x, b.weights[4]);
        store(first + 1, acc[1]);
      }
      add_quad(acc[0], x, b.weights[2]);
      begin(acc[1], b);
      add_quad(acc[1], x, b.weights[0]);
      add_quad(acc[1], fifth, b.weights[11]);
      x = column<Parts, 4>(at(c + 3), s.in_row, b);
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

using Walk = void(const Block&, const Strip&, const Constants&, const uint8_t*);
struct Walks {
  Walk *one_row = nullptr, *two_rows = nullptr;  // two_rows may be absent
};

template <int Parts, Finish F>
Walks choose_walks(const ConvGeometry& g) {
  if (g.kernel_w == 3 && g.stride_w == 1) return {walk3<Parts, F, 1>, walk3<Parts, F, 2>};
  if (g.kernel_w == 3) return {walk3_stride2<Parts, F>};
  if (g.stride_w == 1) return {walk5<Parts, F, 1>};
  return {walk5<Parts, F, 2>};
}

template <Finish F>
Walks choose_walks(const ConvGeometry& g, int64_t parts) {
  if (parts == 1) return choose_walks<1, F>(g);
  if (parts == 2) return choose_walks<2, F>(g);
  return choose_walks<4, F>(g);
}

OCTET_INLINE bool has_walks(const ConvGeometry& g) {
  return g.kernel_h == g.kernel_w && (g.kernel_w == 3 || g.kernel_w == 5) && g.stride_h == g.stride_w &&
         g.stride_w <= 2 && g.dilation_h == 1 && g.dilation_w == 1;
}

}  // namespace
}  // namespace octet::kernels

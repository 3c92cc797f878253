// The 3x3 depthwise kernels of real networks, with strides 1 and 2 and two output rows at a time. Each walks along the
// rows, 8 channels at a time, and makes the operands of a column once for all outputs that it feeds. vpmaddwd
// multiplies two taps: a pair of rows where a whole pair belongs to an output row, pairs of columns of the row left
// over. That makes 10 products for 9 taps:
//
//   stride 1, rows 0..3: output row 0 = row 0 by columns + rows 1, 2; output row 1 = rows 1, 2 + row 3 by columns
//   stride 2, rows 0..4: output row 0 = rows 0, 1 + row 2 by columns; output row 1 = row 2 by columns + rows 3, 4
//
// Vector instructions per 16 outputs, of which a core starts three a cycle (and shuffles only one or two):
//            products  sums  shuffles  to codes
//   stride 1    10      10       4        6.5
//   stride 2    10      10      10        6.5
#pragma once
#include "engine/kernels/avx2/finish.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

// From sums to codes: any scaled sums that fit an int32, or relu_shortcut().
enum class Codes { kScaled, kRelu };

// Weights and epilogue of 8 channels.
struct alignas(32) Octad {
  Y rows[2][3];     // [upper row of the pair: kernel row 0 or 1][kernel column]
  Y columns[2][4];  // [kernel row 0 or 2][what the pair of columns holds for an output: see Part]
  Y start;
  __m256 multiplier, offset;
};
// A pair of neighbouring columns holds the first two columns of an output, its last two, only the first or the last.
enum Part { kFirstTwo, kLastTwo, kFirst, kLast };

inline void make_octad(const ConvArgs& a, int64_t c, bool relu, Octad& to) {
  const int64_t padded = (a.geometry.out_channels + 15) / 16 * 16;
  const auto tap = [&](int64_t ky, int64_t kx) __attribute__((always_inline)) {
    return load8(a.weights + (ky * 3 + kx) * padded + c);
  };
  const auto pair = [](__m128i first, __m128i second) __attribute__((always_inline)) {
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(first, second));
  };
  for (int64_t kx = 0; kx < 3; ++kx) {
    to.rows[0][kx] = pair(tap(0, kx), tap(1, kx));
    to.rows[1][kx] = pair(tap(1, kx), tap(2, kx));
  }
  const __m128i zero = _mm_setzero_si128();
  for (int64_t i = 0; i < 2; ++i) {
    const __m128i w0 = tap(2 * i, 0), w1 = tap(2 * i, 1), w2 = tap(2 * i, 2);
    to.columns[i][kFirstTwo] = pair(w0, w1);
    to.columns[i][kLastTwo] = pair(w1, w2);
    to.columns[i][kFirst] = pair(zero, w0);
    to.columns[i][kLast] = pair(w2, zero);
  }
  to.start = _mm256_add_epi32(load32(a.acc_init + c), _mm256_set1_epi32(relu ? kBitsOfTwo23 : 0));
  to.multiplier = _mm256_loadu_ps(a.epilogue.multiplier + c);
  to.offset = _mm256_mul_ps(to.multiplier, _mm256_set1_ps(-8388608.0f));
}

// A strip of output pixels.
struct Strip {
  const uint8_t* in;  // first tap of the first pixel
  int64_t in_pixel, in_row;
  uint8_t* out;
  int64_t out_pixel, out_row;
  int64_t pixels;
};

// By hand, because the compiler would load many weights early and then have no registers for the sums.
OCTET_INLINE Y product(Y x, const Y& w) {
  Y y;
  asm("vpmaddwd %2, %1, %0" : "=x"(y) : "x"(x), "m"(w));
  return y;
}
OCTET_INLINE void add_product(Y& sum, Y x, const Y& w) {
  sum = _mm256_add_epi32(sum, product(x, w));
}
OCTET_INLINE Y begin(const Octad& o, Y product) {
  Y y;
  asm("vpaddd %2, %1, %0" : "=x"(y) : "x"(product), "m"(o.start));
  return y;
}
// Two taps of 8 channels as words.
OCTET_INLINE Y pair_of(const uint8_t* first, const uint8_t* second) {
  return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(load8(first), load8(second)));
}

// The same address, unknown to the compiler: it would keep that of every weight in a register, then on the stack.
OCTET_INLINE const Octad& unknown(const Octad& o) {
  const Octad* p = &o;
  asm("" : "+r"(p));
  return *p;
}

template <int Rows, Codes kCodes>
struct Walk3 {
  const Octad& octad;
  const Finish& finish;
  const uint8_t* in;
  int64_t in_pixel, in_row;
  uint8_t* out;
  int64_t out_pixel, out_row;

  Walk3(const Octad& o, const Finish& f, const Strip& s)
      : octad(o),
        finish(f),
        in(s.in),
        in_pixel(s.in_pixel),
        in_row(s.in_row),
        out(s.out),
        out_pixel(s.out_pixel),
        out_row(s.out_row) {}

  OCTET_INLINE Y rounded(const Octad& o, Y sum) const {
    if constexpr (kCodes == Codes::kRelu)
      return _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_castsi256_ps(sum), o.multiplier, o.offset));
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), o.multiplier));
  }
  // Writes two pixels of every row, or one.
  template <int Pixels>
  OCTET_INLINE void store(const Octad& o, const Y (&sum)[2][2]) {
    Y words[2];
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) {
      const Y a = rounded(o, sum[r][0]), b = Pixels == 2 ? rounded(o, sum[r][1]) : a;
      words[r] = kCodes == Codes::kRelu ? _mm256_packs_epi32(a, b) : finish.limits().words(a, b);
    }
    if constexpr (Rows == 1) words[1] = words[0];
    Y codes =
        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(words[0], words[1]), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    if constexpr (kCodes != Codes::kRelu) {
      codes = finish.limits().clamp(codes);
      if (finish.has_table()) finish.look_up(&codes, 1);
    }
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) {
      const __m128 row = _mm_castsi128_ps(r ? _mm256_extracti128_si256(codes, 1) : _mm256_castsi256_si128(codes));
      uint8_t* const to = out + r * out_row;
      _mm_storel_pi(reinterpret_cast<__m64*>(to), row);
      if constexpr (Pixels == 2) _mm_storeh_pi(reinterpret_cast<__m64*>(to + out_pixel), row);
    }
    out += 2 * out_pixel;
  }

  // Stride 1. Takes two columns: the last ones of two pixels with the sums `old` and the first ones of the next two
  // (kNew), or just the last one of one pixel (kOld == 1), which needs no more than the first column.
  template <int kOld, bool kNew>
  OCTET_INLINE void step1(Y (&sum)[2][2]) {
    constexpr bool kRight = kOld != 1 || kNew;
    const int64_t right = kRight ? in_pixel : 0;
    const Octad& o = unknown(octad);
    const uint8_t *row1 = in + in_row, *row2 = row1 + in_row;
    const Y a = pair_of(row1, row2), b = kRight ? pair_of(row1 + right, row2 + right) : a;
    Y next[2][2];
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) {
      const uint8_t* single = r ? row2 + in_row : in;
      const Y x = pair_of(single, single + right);
      const Y(&w)[3] = o.rows[1 - r];
      const Y(&v)[4] = o.columns[r];
      if constexpr (kOld > 0) {
        add_product(sum[r][0], a, w[2]);
        add_product(sum[r][0], x, v[kLast]);
      }
      if constexpr (kOld > 1) {
        add_product(sum[r][1], a, w[1]);
        add_product(sum[r][1], b, w[2]);
        add_product(sum[r][1], x, v[kLastTwo]);
      }
      if constexpr (kNew) {
        next[r][0] = begin(o, product(a, w[0]));
        add_product(next[r][0], b, w[1]);
        add_product(next[r][0], x, v[kFirstTwo]);
        next[r][1] = begin(o, product(b, w[0]));
        add_product(next[r][1], x, v[kFirst]);
      }
    }
    if constexpr (kOld > 0) store<kOld>(o, sum);
    if constexpr (kNew) {
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) sum[r][0] = next[r][0], sum[r][1] = next[r][1];
      in += 2 * in_pixel;
    }
  }
  OCTET_INLINE void run1(int64_t pixels) {
    Y sum[2][2];
    step1<0, true>(sum);
    for (; pixels > 2; pixels -= 2) step1<2, true>(sum);
    if (pixels == 2) {
      step1<2, false>(sum);
    } else {
      step1<1, false>(sum);
    }
  }

  // Stride 2. Takes two columns: the first two of a pixel and the last one of the pixel before.
  template <bool kOld, bool kNew>
  OCTET_INLINE void step2(Y (&old)[2], Y (&next)[2]) {
    const Octad& o = unknown(octad);
    const uint8_t *p = in, *q = p + in_pixel, *lower_p = in + 3 * in_row, *lower_q = lower_p + in_pixel;
    asm("" : "+r"(p), "+r"(q), "+r"(lower_p), "+r"(lower_q));  // no further address is kept from step to step
    const Y x = pair_of(p + 2 * in_row, (kNew ? q : p) + 2 * in_row);
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) {
      const uint8_t *left = r ? lower_p : p, *right = r ? lower_q : q;
      const Y a = pair_of(left, left + in_row);
      const Y(&w)[3] = o.rows[r];
      const Y(&v)[4] = o.columns[1 - r];
      if constexpr (kOld) {
        add_product(old[r], a, w[2]);
        add_product(old[r], x, v[kLast]);
      }
      if constexpr (kNew) {
        next[r] = begin(o, product(a, w[0]));
        add_product(next[r], pair_of(right, right + in_row), w[1]);
        add_product(next[r], x, v[kFirstTwo]);
      }
    }
    in += 2 * in_pixel;
  }
  OCTET_INLINE void run2(int64_t pixels) {
    Y first[2], second[2], third[2];
    step2<false, true>(first, first);
    for (; pixels > 2; pixels -= 2) {
      step2<true, true>(first, second);
      step2<true, true>(second, third);
      store<2>(octad, {{first[0], second[0]}, {first[1], second[1]}});
      first[0] = third[0], first[1] = third[1];
    }
    if (pixels == 2) {
      step2<true, true>(first, second);
      step2<true, false>(second, second);
      store<2>(octad, {{first[0], second[0]}, {first[1], second[1]}});
    } else {
      step2<true, false>(first, first);
      store<1>(octad, {{first[0], first[0]}, {first[1], first[1]}});
    }
  }
};

using Walk = void(const Octad&, const Finish&, const Strip&);
template <int kStride, int Rows, Codes kCodes>
void walk3(const Octad& octad, const Finish& finish, const Strip& s) {
  Walk3<Rows, kCodes> w(octad, finish, s);
  if constexpr (kStride == 1) {
    w.run1(s.pixels);
  } else {
    w.run2(s.pixels);
  }
}

inline bool has_walks(const ConvGeometry& g) {
  return g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == g.stride_w && g.stride_w <= 2 && g.dilation_h == 1 &&
         g.dilation_w == 1;
}
// By number of output rows, less one.
template <Codes kCodes>
Walk* const* choose_walks(const ConvGeometry& g) {
  static constexpr Walk* kWalks[2][2] = {{walk3<1, 1, kCodes>, walk3<1, 2, kCodes>},
                                         {walk3<2, 1, kCodes>, walk3<2, 2, kCodes>}};
  return kWalks[g.stride_w - 1];
}

// A convolution that has walks. `finish` is straight().
inline void walk_rows(const ConvArgs& a, Range rows, const Finish& finish, bool relu) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  Walk* const* const walks = relu ? choose_walks<Codes::kRelu>(g) : choose_walks<Codes::kScaled>(g);
  constexpr int64_t kChunk = 64;  // channels: a line of the cache
  Octad octads[kChunk / 8];
  for (int64_t c0 = 0; c0 < g.out_channels; c0 += kChunk) {
    const int64_t count = smaller((g.out_channels - c0 + 15) / 16 * 2, kChunk / 8);
    for (int64_t i = 0; i < count; ++i) make_octad(a, c0 + i * 8, relu, octads[i]);
    for (int64_t row = rows.begin; row < rows.end;) {
      const int64_t n = row / e.out.h, y = row % e.out.h, made = smaller(smaller(rows.end - row, e.out.h - y), 2);
      row += made;
      Strip s{a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride -
                  g.pad_left * a.in.c_pitch + c0,
              a.in.c_pitch,
              a.in.row_stride,
              e.out.data + n * e.out.image_stride + y * e.out.row_stride + c0,
              e.out.c_pitch,
              e.out.row_stride,
              e.out.w};
      for (int64_t i = 0; i < count; ++i, s.in += 8, s.out += 8) walks[made - 1](octads[i], finish, s);
    }
  }
}

}  // namespace
}  // namespace octet::kernels

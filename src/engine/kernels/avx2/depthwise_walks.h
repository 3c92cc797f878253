// The 3x3 depthwise kernels of real networks, with strides 1 and 2 and two output rows at a time. Each walks along the
// rows and makes the operands of a column once for all outputs that it feeds. vpmaddwd multiplies two taps: a pair of
// rows where a whole pair belongs to an output row, pairs of columns of the row left over, which makes 10 products of
// 9 taps:
//
//   stride 1, rows 0..3: output row 0 = row 0 by columns + rows 1, 2; output row 1 = rows 1, 2 + row 3 by columns
//   stride 2, rows 0..4: output row 0 = rows 0, 1 + row 2 by columns; output row 1 = row 2 by columns + rows 3, 4
//
// Vector instructions per 16 outputs, of which a core starts at most three a cycle:
//                           products  sums  shuffles  to codes
//   stride 1,  8 channels      10      10      4         6.5
//   stride 2, 32 channels      10      10      7.5       5.5
//
// With stride 1, wider vectors would save another shuffle, but measured no faster.
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
// A pair of neighboring columns holds the first two columns of an output, its last two, only the first or the last.
enum Part { kFirstTwo, kLastTwo, kFirst, kLast };

OCTET_INLINE Y two_lanes(const void* p, const void* q) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(p)), load16(q), 1);
}

// Channels c .. c + 3 and the same `lane` channels further.
OCTET_INLINE void make_octad(const ConvArgs& a, int64_t c, int64_t lane, bool relu, Octad& to) {
  const int64_t padded = (a.geometry.out_channels + 15) / 16 * 16;
  const auto tap = [&](int64_t ky, int64_t kx) __attribute__((always_inline)) {
    const int8_t* w = a.weights + (ky * 3 + kx) * padded + c;
    return lane == 4 ? load8(w) : _mm_unpacklo_epi32(_mm_loadu_si32(w), _mm_loadu_si32(w + lane));
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
  const float* m = a.epilogue.multiplier + c;
  to.start =
      _mm256_add_epi32(two_lanes(a.acc_init + c, a.acc_init + c + lane), _mm256_set1_epi32(relu ? kBitsOfTwo23 : 0));
  to.multiplier = _mm256_castsi256_ps(two_lanes(m, m + lane));
  to.offset = _mm256_mul_ps(to.multiplier, _mm256_set1_ps(-8388608.0f));
}

// A strip of output pixels, of one row or two.
struct Strip {
  const uint8_t* in;  // first tap of the first pixel
  int64_t in_pixel, in_row;
  uint8_t* out;
  int64_t out_pixel, out_row;
  int64_t pixels;
  // With 32 channels: from the first lane to the second. That has the next 16 channels (16), or where only 16 are left
  // the same ones of another strip.
  int64_t in_lane = 16, out_lane = 16;
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
OCTET_INLINE Y begin(const Octad& o, Y x, const Y& w) {
  Y y;
  asm("vpaddd %2, %1, %0" : "=x"(y) : "x"(product(x, w)), "m"(o.start));
  return y;
}

// The same address, unknown to the compiler: it would keep that of every weight in a register, then on the stack.
OCTET_INLINE const Octad* unknown(const Octad* p) {
  asm("" : "+r"(p));
  return p;
}

template <Codes kCodes>
OCTET_INLINE Y rounded(const Octad& o, Y sum) {
  if constexpr (kCodes == Codes::kRelu)
    return _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_castsi256_ps(sum), o.multiplier, o.offset));
  return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), o.multiplier));
}
template <Codes kCodes>
OCTET_INLINE Y pack_rounded(const Finish& finish, Y a, Y b) {
  return kCodes == Codes::kRelu ? _mm256_packs_epi32(a, b) : finish.limits().words(a, b);
}
template <Codes kCodes>
OCTET_INLINE Y codes_of(const Finish& finish, Y low, Y high) {
  if constexpr (kCodes == Codes::kRelu) return finish.limits().below(_mm256_packus_epi16(low, high));
  Y codes = finish.pack_words(low, high);
  if (finish.has_table()) finish.look_up(&codes, 1);
  return codes;
}

// Stride 1, 8 channels.
template <int kRows, Codes kCodes>
struct Walk1 {
  const Octad* octad;
  const Finish& finish;
  Strip s;

  // Two taps as words.
  static OCTET_INLINE Y pair_of(const uint8_t* first, const uint8_t* second) {
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(load8(first), load8(second)));
  }
  // Writes two pixels of every row, or one.
  template <int kPixels>
  OCTET_INLINE void store(const Octad& o, const Y (&sum)[2][2]) {
    Y words[2];
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      const Y a = rounded<kCodes>(o, sum[r][0]), b = kPixels == 2 ? rounded<kCodes>(o, sum[r][1]) : a;
      words[r] = pack_rounded<kCodes>(finish, a, b);
    }
    if constexpr (kRows == 1) words[1] = words[0];
    const Y codes = _mm256_permutevar8x32_epi32(codes_of<kCodes>(finish, words[0], words[1]),
                                                _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      const __m128 row = _mm_castsi128_ps(r ? _mm256_extracti128_si256(codes, 1) : _mm256_castsi256_si128(codes));
      uint8_t* const to = s.out + r * s.out_row;
      _mm_storel_pi(reinterpret_cast<__m64*>(to), row);
      if constexpr (kPixels == 2) _mm_storeh_pi(reinterpret_cast<__m64*>(to + s.out_pixel), row);
    }
    s.out += 2 * s.out_pixel;
  }

  // Takes two columns: the last ones of two pixels with their sums in `sum` and the first ones of the next two
  // (kNew), or just the last one of one pixel (kOld == 1), which needs no more than the first column.
  template <int kOld, bool kNew>
  OCTET_INLINE void step(Y (&sum)[2][2]) {
    constexpr bool kRight = kOld != 1 || kNew;
    const int64_t right = kRight ? s.in_pixel : 0;
    const Octad& o = *unknown(octad);
    const uint8_t *row1 = s.in + s.in_row, *row2 = row1 + s.in_row;
    const Y a = pair_of(row1, row2), b = kRight ? pair_of(row1 + right, row2 + right) : a;
    Y next[2][2];
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* single = r ? row2 + s.in_row : s.in;
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
        next[r][0] = begin(o, a, w[0]);
        add_product(next[r][0], b, w[1]);
        add_product(next[r][0], x, v[kFirstTwo]);
        next[r][1] = begin(o, b, w[0]);
        add_product(next[r][1], x, v[kFirst]);
      }
    }
    if constexpr (kOld > 0) store<kOld>(o, sum);
    if constexpr (kNew) {
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) sum[r][0] = next[r][0], sum[r][1] = next[r][1];
      s.in += 2 * s.in_pixel;
    }
  }
  OCTET_INLINE void run() {
    Y sum[2][2];
    int64_t pixels = s.pixels;
    step<0, true>(sum);
    for (; pixels > 2; pixels -= 2) step<2, true>(sum);
    if (pixels == 2) {
      step<2, false>(sum);
    } else {
      step<1, false>(sum);
    }
  }
};

// Bytes of two taps: those of octads 0 and 1, of octads 2 and 3.
struct Pair {
  Y half[2];
};
OCTET_INLINE Pair pair_of(Y first, Y second) {
  return {{_mm256_unpacklo_epi8(first, second), _mm256_unpackhi_epi8(first, second)}};
}
// Words of octad 2 * half + q.
template <int q>
OCTET_INLINE Y words_of(Y half) {
  const Y zero = _mm256_setzero_si256();
  return q ? _mm256_unpackhi_epi8(half, zero) : _mm256_unpacklo_epi8(half, zero);
}

// Stride 2, 32 channels as two lanes of 16. Unpacks work within the lanes, so octad k has channels 4k .. 4k + 3 of
// both, and the packs at the end restore the order.
template <int kRows, bool kAdjacent, Codes kCodes>
struct Walk2 {
  const Octad* octads;
  const Finish& finish;
  Strip s;

  OCTET_INLINE Y load(const uint8_t* p) const { return kAdjacent ? load32(p) : two_lanes(p, p + s.in_lane); }
  OCTET_INLINE void store(uint8_t* to, Y low, Y high) const {
    const Y codes = codes_of<kCodes>(finish, low, high);
    if constexpr (kAdjacent) {
      store32(to, codes);
    } else {
      store16(to, _mm256_castsi256_si128(codes));
      store16(to + s.out_lane, _mm256_extracti128_si256(codes, 1));
    }
  }

  // Takes two columns: the first two of a pixel and the last one of the pixel before.
  template <bool kOld, bool kNew>
  OCTET_INLINE void step(Y (&sum)[4][2]) {
    const uint8_t *p = s.in, *lower = p + 3 * s.in_row;
    const int64_t right = kNew ? s.in_pixel : 0;
    const Octad* first = unknown(octads);
    const Pair x = pair_of(load(p + 2 * s.in_row), load(p + right + 2 * s.in_row));
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* top = r ? lower : p;
      const Pair a = pair_of(load(top), load(top + s.in_row));
      const Pair b = kNew ? pair_of(load(top + right), load(top + right + s.in_row)) : a;
      Y words[2];
      const auto half = [&]<int h>() __attribute__((always_inline)) {
        Y values[2];
        const auto part = [&]<int q>() __attribute__((always_inline)) {
          const Octad& o = first[2 * h + q];
          Y& y = sum[2 * h + q][r];
          const Y aq = words_of<q>(a.half[h]), xq = words_of<q>(x.half[h]);
          const Y(&w)[3] = o.rows[r];
          const Y(&v)[4] = o.columns[1 - r];
          if constexpr (kOld) {
            add_product(y, aq, w[2]);
            add_product(y, xq, v[kLast]);
            values[q] = rounded<kCodes>(o, y);
          }
          if constexpr (kNew) {
            y = begin(o, aq, w[0]);
            add_product(y, words_of<q>(b.half[h]), w[1]);
            add_product(y, xq, v[kFirstTwo]);
          }
        };
        part.template operator()<0>();
        part.template operator()<1>();
        if constexpr (kOld) words[h] = pack_rounded<kCodes>(finish, values[0], values[1]);
      };
      half.template operator()<0>();
      half.template operator()<1>();
      if constexpr (kOld) store(s.out + r * s.out_row, words[0], words[1]);
    }
    s.in += 2 * s.in_pixel;
    s.out += kOld * s.out_pixel;
  }
  OCTET_INLINE void run() {
    Y sum[4][2];
    step<false, true>(sum);
    for (int64_t left = s.pixels; left > 1; --left) step<true, true>(sum);
    step<true, false>(sum);
  }
};

// A strip, for this many channels.
using Walk = void(const Octad*, const Finish&, Strip s, int64_t channels);
template <int kRows, Codes kCodes>
void walk1(const Octad* octad, const Finish& finish, Strip s, int64_t channels) {
  for (; channels > 0; channels -= 8, ++octad, s.in += 8, s.out += 8) Walk1<kRows, kCodes>{octad, finish, s}.run();
}
template <int kRows, bool kAdjacent, Codes kCodes>
void walk2(const Octad* octads, const Finish& finish, Strip s, int64_t channels) {
  for (; channels > 0; channels -= 32, octads += 4, s.in += 32, s.out += 32)
    Walk2<kRows, kAdjacent, kCodes>{octads, finish, s}.run();
}

// By number of output rows, less one.
struct Walks {
  Walk *by_eight[2], *by_32[2], *by_16[2];
};
template <Codes kCodes>
constexpr Walks kWalks = {{walk1<1, kCodes>, walk1<2, kCodes>},
                          {walk2<1, true, kCodes>, walk2<2, true, kCodes>},
                          {walk2<1, false, kCodes>, walk2<2, false, kCodes>}};

inline bool has_walks(const ConvGeometry& g) {
  return g.kernel_h == 3 && g.kernel_w == 3 && g.stride_h == g.stride_w && g.stride_w <= 2 && g.dilation_h == 1 &&
         g.dilation_w == 1;
}

// A convolution that has walks. `finish` is straight().
inline void walk_rows(const ConvArgs& a, Range rows, const Finish& finish, bool relu) {
  const ConvGeometry& g = a.geometry;
  const Epilogue& e = a.epilogue;
  const Walks& walks = relu ? kWalks<Codes::kRelu> : kWalks<Codes::kScaled>;
  constexpr int64_t kChunk = 64;  // channels: a line of the cache
  Octad octads[kChunk / 8];
  for (int64_t c = 0; c < g.out_channels; c += kChunk) {
    const int64_t channels = smaller((g.out_channels - c + 15) / 16 * 16, kChunk), wide = channels / 32 * 32;
    if (g.stride_w == 1) {
      for (int64_t i = 0; i < channels; i += 8) make_octad(a, c + i, 4, relu, octads[i / 8]);
    } else {
      for (int64_t i = 0; i < channels; i += 32)
        for (int64_t k = 0; k < 4; ++k) make_octad(a, c + i + 4 * k, i < wide ? 16 : 0, relu, octads[i / 8 + k]);
    }
    for (int64_t row = rows.begin; row < rows.end;) {
      const int64_t n = row / e.out.h, y0 = row % e.out.h, height = smaller(rows.end - row, e.out.h - y0);
      row += height;
      const int64_t in_step = g.stride_h * a.in.row_stride;
      const uint8_t* in = a.in.data + n * a.in.image_stride + y0 * in_step - g.pad_top * a.in.row_stride -
                          g.pad_left * a.in.c_pitch + c;
      uint8_t* out = e.out.data + n * e.out.image_stride + y0 * e.out.row_stride + c;
      for (int64_t y = 0; y < height; y += 2, in += 2 * in_step, out += 2 * e.out.row_stride) {
        const int64_t left = height - y, more = left > 1;
        Strip s{in, a.in.c_pitch, a.in.row_stride, out, e.out.c_pitch, e.out.row_stride, e.out.w};
        if (g.stride_w == 1) {
          walks.by_eight[more](octads, finish, s, channels);
        } else {
          walks.by_32[more](octads, finish, s, wide);
          if (wide == channels || y % 4 != 0) continue;
          // The other lane is two rows further down, or as far as the image goes.
          const int64_t down = left > 2 ? smaller(left - 2, 2) : 0;
          s.in_lane = down * in_step, s.out_lane = down * e.out.row_stride;
          s.in += wide, s.out += wide;
          walks.by_16[more](octads + wide / 8, finish, s, 16);
        }
      }
    }
  }
}

}  // namespace
}  // namespace octet::kernels

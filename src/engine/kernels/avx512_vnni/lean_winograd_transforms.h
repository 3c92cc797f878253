// The transforms of the Winograd convolutions that transform their weights in every run: lean_winograd.cc and
// register_winograd.cc.
//
// So that most of the transform of the weights costs nothing, the factors of its rows are in AT; the sums are 576 times
// the convolution as there. Tiles of which only two rows (or columns) are in the output leave out the points 2 and -2:
// they are F(2,3) in that direction, of the same weights.
//
//       | 1  0  0 |                                       of two outputs:
//       | 1  1  1 |        |  6 -4 -4  1  1  0 |               | 1  0 -1  0 |        | 24  12  12   0 |
//   G = | 1 -1  1 |   AT = |  0 -4  4  2 -2  0 |          BT = | 0  1  1  0 |   AT = |  0  12 -12 -24 |
//       | 1  2  4 |        |  0 -4 -4  4  4  0 |               | 0 -1  1  0 |
//       | 1 -2  4 |        |  0 -4  4  8 -8 24 |               | 0  1  0 -1 |
//       | 0  0  1 |
#pragma once
#include "engine/kernels/avx512_vnni/vector.h"
#include "engine/kernels/int8_conv.h"
#include "engine/kernels/winograd_transforms.h"

namespace octet::kernels {
namespace {

using Words = Vectors64::Words;
using Sums = Vectors64::Sums;

constexpr int kVectors = 2;     // blocks of 16 output channels whose sums are finished together
constexpr int64_t kChunk = 64;  // input channels of a vector of codes: 32 pairs, the even ones first
constexpr int64_t kPairs = kChunk / 2;

// The pairs (0, 2) or (1, 3) of four input channels, as vectors of bytes have them without a shuffle.
template <bool kOdd>
OCTET_INLINE Words signed_pairs(const int8_t* four) {
  const Z w = _mm512_loadu_si512(four);
  return (Words)_mm512_srai_epi16(kOdd ? w : _mm512_slli_epi16(w, 8), 8);
}
// The same times 2 to the kShift.
template <bool kOdd, int kShift>
OCTET_INLINE Words scaled_signed_pairs(const int8_t* four) {
  const Z w = _mm512_loadu_si512(four);
  const Z high = kOdd ? _mm512_and_si512(w, _mm512_set1_epi16(static_cast<int16_t>(0xff00))) : _mm512_slli_epi16(w, 8);
  return (Words)_mm512_srai_epi16(high, 8 - kShift);
}
template <bool kOdd>
OCTET_INLINE Words unsigned_pairs(const uint8_t* codes) {
  const Z c = _mm512_loadu_si512(codes);
  return (Words)(kOdd ? _mm512_srli_epi16(c, 8) : _mm512_and_si512(c, _mm512_set1_epi16(255)));
}

// Along one axis of a tile: six codes to six positions, or four codes to 0, 1, 2 and 5.
template <bool kFour>
OCTET_FLAT void transform_codes(const Words (&d)[6], Words (&v)[6]) {
  if constexpr (kFour) {
    transform_input(d, v);
  } else {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[5] = d[1] - d[3];
  }
}

// Where the rows and columns that a tile reads lie. Those beyond the last one that an output needs are read from that
// one again: they only reach outputs that are not there.
struct TileInput {
  const uint8_t* row[6];
  int64_t column[6];
};

template <bool kOdd, bool kTall, bool kWide>
OCTET_INLINE void transform_pairs(const TileInput& in, int64_t channel, std::byte* const* to, int64_t at) {
  constexpr int kRows = kTall ? 6 : 4, kColumns = kWide ? 6 : 4;
  Words lines[6][6];
#pragma GCC unroll 6
  for (int x = 0; x < kColumns; ++x) {
    Words column[6], v[6];
#pragma GCC unroll 6
    for (int y = 0; y < kRows; ++y) column[y] = unsigned_pairs<kOdd>(in.row[y] + in.column[x] + channel);
    transform_codes<kTall>(column, v);
#pragma GCC unroll 6
    for (int y = 0; y < 6; ++y)
      if (kTall || (y != 3 && y != 4)) lines[y][x] = v[y];
  }
#pragma GCC unroll 6
  for (int y = 0; y < 6; ++y) {
    if (!kTall && (y == 3 || y == 4)) continue;
    Words v[6];
    transform_codes<kWide>(lines[y], v);
#pragma GCC unroll 6
    for (int x = 0; x < 6; ++x)
      if (kWide || (x != 3 && x != 4)) store_vector(to[y * 6 + x] + at, v[x]);
  }
}

// To V: position p of a chunk of channels to `to[p]`, the next chunks `chunk_bytes` further on each.
template <bool kTall, bool kWide>
__attribute__((noinline)) void transform_codes_of_tile(const TileInput& in, int64_t channels, std::byte* const* to,
                                                       int64_t chunk_bytes) {
  for (int64_t c = 0, at = 0; c < channels; c += kChunk, at += chunk_bytes) {
    transform_pairs<false, kTall, kWide>(in, c, to, at);
    transform_pairs<true, kTall, kWide>(in, c, to, at + 64);
  }
}

// Along one axis of a tile: the sums of six positions to four outputs, or those of 0, 1, 2 and 5 to two.
template <bool kFour>
OCTET_FLAT void transform_sums(const Sums (&m)[6], Sums (&y)[4]) {
  const Sums s1 = m[1] + m[2], d1 = m[1] - m[2];
  if constexpr (kFour) {
    const Sums s2 = m[3] + m[4], d2 = m[3] - m[4], twice = d2 + d2;
    y[0] = ((m[0] - s1) << 2) + (m[0] << 1) + s2;
    y[1] = twice - (d1 << 2);
    y[2] = (s2 - s1) << 2;
    y[3] = (twice - d1 + (m[5] << 2) + (m[5] << 1)) << 2;
  } else {
    const Sums a = m[0] + m[0] + s1, b = d1 - (m[5] + m[5]);
    y[0] = (a << 3) + (a << 2);
    y[1] = (b << 3) + (b << 2);
  }
}

// 64 times the sums of a tile, start included, to acc: rows of `row` pixels.
template <bool kTall, bool kWide>
__attribute__((noinline)) void recover(const int32_t* m, const int32_t* starts, int32_t* acc, int64_t row) {
  constexpr int64_t kStep = kVectors * kChannelBlock;
  for (int64_t lane = 0; lane < kStep; lane += kChannelBlock) {
    Sums lines[4][6];
#pragma GCC unroll 6
    for (int x = 0; x < 6; ++x) {
      if (!kWide && (x == 3 || x == 4)) continue;
      Sums column[6], y[4];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i)
        if (kTall || (i != 3 && i != 4)) column[i] = load_vector<Sums>(m + lane + (i * 6 + x) * kStep);
      transform_sums<kTall>(column, y);
#pragma GCC unroll 4
      for (int i = 0; i < (kTall ? 4 : 2); ++i) lines[i][x] = y[i];
    }
    const Sums start = load_vector<Sums>(starts + lane);
#pragma GCC unroll 4
    for (int y = 0; y < (kTall ? 4 : 2); ++y) {
      Sums outputs[4];
      transform_sums<kWide>(lines[y], outputs);
#pragma GCC unroll 4
      for (int x = 0; x < (kWide ? 4 : 2); ++x)
        store_vector(acc + (y * row + x) * kStep + lane, outputs[x] * 954437177u + start);
    }
  }
}

}  // namespace
}  // namespace octet::kernels

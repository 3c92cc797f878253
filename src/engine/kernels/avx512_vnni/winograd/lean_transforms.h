// The transforms of the Winograd convolutions that transform their weights in every run: lean.cc and
// register.cc.
//
// So that most of the transform of the weights costs nothing, the factors of its rows are in AT; the sums are 576 times
// the convolution as there. Tiles of which only two rows (or columns) are in the output leave out the points 2 and -2:
// they are F(2,3) in that direction, of the same weights. Those with three may leave out -2: F(3,3).
//
//       | 1  0  0 |                                       of two outputs:
//       | 1  1  1 |        |  6 -4 -4  1  1  0 |               | 1  0 -1  0 |        | 24  12  12   0 |
//   G = | 1 -1  1 |   AT = |  0 -4  4  2 -2  0 |          BT = | 0  1  1  0 |   AT = |  0  12 -12 -24 |
//       | 1  2  4 |        |  0 -4 -4  4  4  0 |               | 0 -1  1  0 |
//       | 1 -2  4 |        |  0 -4  4  8 -8 24 |               | 0  1  0 -1 |
//       | 0  0  1 |
//                          of three:
//                               | 2 -1 -2  1  0 |
//                               | 0 -2 -1  1  0 |        | 12 -12  -4  4  0 |
//                          BT = | 0  2 -3  1  0 |   AT = |  0 -12   4  8  0 |
//                               | 0 -1  0  1  0 |        |  0 -12  -4 16 24 |
//                               | 0  2 -1 -2  1 |
#pragma once
#include "engine/kernels/avx512_vnni/conv/pixel_codes.h"
#include "engine/kernels/avx512_vnni/vector.h"
#include "engine/kernels/int8_conv.h"
#include "engine/kernels/winograd/transforms.h"

namespace octet::kernels {
namespace {

using Words = Vectors64::Words;
using Sums = Vectors64::Sums;

constexpr int kVectors = 2;     // blocks of 16 output channels whose sums are finished together
constexpr int64_t kChunk = 64;  // input channels of a vector of codes: 32 pairs, the even ones first
constexpr int64_t kPairs = kChunk / 2;

// The pairs (0, 2) or (1, 3) of four input channels, as vectors of bytes have them without a shuffle.
template <bool kOdd>
OCTET_INLINE Words signed_pairs(const Z& four) {
  return (Words)_mm512_srai_epi16(kOdd ? four : _mm512_slli_epi16(four, 8), 8);
}
// The same times 2 to the kShift.
template <bool kOdd, int kShift>
OCTET_INLINE Words scaled_signed_pairs(const Z& four) {
  const Z high =
      kOdd ? _mm512_and_si512(four, _mm512_set1_epi16(static_cast<int16_t>(0xff00))) : _mm512_slli_epi16(four, 8);
  return (Words)_mm512_srai_epi16(high, 8 - kShift);
}
template <bool kOdd>
OCTET_INLINE Words unsigned_pairs(const uint8_t* codes) {
  const Z c = _mm512_loadu_si512(codes);
  return (Words)(kOdd ? _mm512_srli_epi16(c, 8) : _mm512_and_si512(c, _mm512_set1_epi16(255)));
}

// The positions of an axis that are there for so many outputs: all, 0, 1, 2, 3 and 5, or 0, 1, 2 and 5.
constexpr bool has_position(int outputs, int i) {
  return outputs == 4 || (i != 4 && (outputs == 3 || i != 3));
}

// Along one axis of a tile: the codes that kOutputs read to their positions.
template <int kOutputs>
OCTET_FLAT void transform_codes(const Words (&d)[6], Words (&v)[6]) {
  if constexpr (kOutputs == 4) {
    transform_input(d, v);
  } else if constexpr (kOutputs == 3) {
    const Words a = d[3] - d[1], b = d[3] - d[2], c = d[0] - d[2];
    v[0] = c + c + a;
    v[1] = b - d[1] - d[1];
    v[2] = b + ((d[1] - d[2]) << 1);
    v[3] = a;
    v[5] = d[4] - d[2] - a - a;
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

template <bool kOdd, int kRows, int kColumns>
OCTET_INLINE void transform_pairs(const TileInput& in, int64_t channel, std::byte* const* to, int64_t at) {
  Words lines[6][6];
#pragma GCC unroll 6
  for (int x = 0; x < kColumns + 2; ++x) {
    Words column[6], v[6];
#pragma GCC unroll 6
    for (int y = 0; y < kRows + 2; ++y) column[y] = unsigned_pairs<kOdd>(in.row[y] + in.column[x] + channel);
    transform_codes<kRows>(column, v);
#pragma GCC unroll 6
    for (int y = 0; y < 6; ++y)
      if (has_position(kRows, y)) lines[y][x] = v[y];
  }
#pragma GCC unroll 6
  for (int y = 0; y < 6; ++y) {
    if (!has_position(kRows, y)) continue;
    Words v[6];
    transform_codes<kColumns>(lines[y], v);
#pragma GCC unroll 6
    for (int x = 0; x < 6; ++x)
      if (has_position(kColumns, x)) store_vector(to[y * 6 + x] + at, v[x]);
  }
}

// To V, of a tile of kRows x kColumns outputs: position p of a chunk of channels to `to[p]`, the next chunks
// `chunk_bytes` further on each.
template <int kRows, int kColumns>
__attribute__((noinline)) void transform_codes_of_tile(const TileInput& in, int64_t channels, std::byte* const* to,
                                                       int64_t chunk_bytes) {
  for (int64_t c = 0, at = 0; c < channels; c += kChunk, at += chunk_bytes) {
    transform_pairs<false, kRows, kColumns>(in, c, to, at);
    transform_pairs<true, kRows, kColumns>(in, c, to, at + 64);
  }
}

// Along one axis of a tile: the sums of its positions to kOutputs.
template <int kOutputs>
OCTET_FLAT void transform_sums(const Sums (&m)[6], Sums (&y)[4]) {
  if constexpr (kOutputs == 3) {
    const Sums thrice = m[1] + m[1] + m[1], first = m[0] + m[0] + m[0], two = m[3] + m[3], last = m[5] + m[5];
    y[0] = (first - thrice - m[2] + m[3]) << 2;
    y[1] = (m[2] - thrice + two) << 2;
    y[2] = (two + two + last + last + last - thrice - m[2]) << 2;
    return;
  }
  const Sums s1 = m[1] + m[2], d1 = m[1] - m[2];
  if constexpr (kOutputs == 4) {
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

// 64 times the sums of a tile of kRows x kColumns outputs, start included: each row of 16 channels is given to
// take(channel, y, outputs).
template <int kRows, int kColumns, typename Take>
OCTET_INLINE void recover_rows(const int32_t* m, const int32_t* starts, const Take& take) {
  constexpr int64_t kStep = kVectors * kChannelBlock;
  for (int64_t lane = 0; lane < kStep; lane += kChannelBlock) {
    Sums lines[4][6];
#pragma GCC unroll 6
    for (int x = 0; x < 6; ++x) {
      if (!has_position(kColumns, x)) continue;
      Sums column[6], y[4];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i)
        if (has_position(kRows, i)) column[i] = load_vector<Sums>(m + lane + (i * 6 + x) * kStep);
      transform_sums<kRows>(column, y);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) lines[i][x] = y[i];
    }
    const Sums start = load_vector<Sums>(starts + lane);
#pragma GCC unroll 4
    for (int y = 0; y < kRows; ++y) {
      Sums outputs[4];
      transform_sums<kColumns>(lines[y], outputs);
#pragma GCC unroll 4
      for (int x = 0; x < 4; ++x) outputs[x] = x < kColumns ? outputs[x] * 954437177u + start : outputs[0];
      take(lane, y, outputs);
    }
  }
}

// To acc: rows of `row` pixels.
template <int kRows, int kColumns>
__attribute__((noinline)) void recover(const int32_t* m, const int32_t* starts, int32_t* acc, int64_t row) {
  recover_rows<kRows, kColumns>(
      m, starts, [&](int64_t lane, int y, const Sums(&outputs)[4]) __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int x = 0; x < kColumns; ++x)
          store_vector(acc + (y * row + x) * kVectors * kChannelBlock + lane, outputs[x]);
      });
}

// Where the codes of a tile go: `rows` x `columns` pixels from `out`, of 16 channels from `channel` on and the next.
struct TileOutput {
  uint8_t* out = nullptr;
  int64_t rows = 0, columns = 0, channel = 0;
};
template <int kRows, int kColumns>
__attribute__((noinline)) void recover_codes(const int32_t* m, const int32_t* starts, const PixelCodes& codes,
                                             const TileOutput& to) {
  recover_rows<kRows, kColumns>(
      m, starts, [&](int64_t lane, int y, const Sums(&outputs)[4]) __attribute__((always_inline)) {
        if (y < to.rows) codes.store(outputs, to.channel + lane, to.out + y * codes.row_stride() + lane, to.columns);
      });
}

}  // namespace
}  // namespace octet::kernels

// Products of two matrices of codes, with 256-bit vectors: codes minus their zero points are words, pairs of products
// are summed by one instruction, and no sum can saturate.
#include "engine/kernels/int8_matmul.h"

#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

// Two words of a column of b, of 16 columns: two vectors.
constexpr int64_t kPairBytes = kMatMulColumns * 4;

OCTET_INLINE Y words(const uint8_t* codes, Y zero_point) {
  return _mm256_sub_epi16(_mm256_cvtepu8_epi16(load16(codes)), zero_point);
}

// Rows k and k + 1 of b, 16 columns from `column` on -> a pair for each column.
OCTET_INLINE void store_pairs(Y even, Y odd, std::byte* to) {
  // The unpacks work within 128-bit lanes.
  even = _mm256_permute4x64_epi64(even, 0xd8), odd = _mm256_permute4x64_epi64(odd, 0xd8);
  store32(to, _mm256_unpacklo_epi16(even, odd));
  store32(to + 32, _mm256_unpackhi_epi16(even, odd));
}

void pack_rows(const uint8_t* b, int64_t pitch, int32_t zero_point, int64_t n, int64_t k, std::byte* packed) {
  const Y zero = _mm256_set1_epi16(static_cast<int16_t>(zero_point));
  for (int64_t column = 0; column < n; column += kMatMulColumns)
    for (int64_t i = 0; i < k; i += 2, packed += kPairBytes) {
      const uint8_t* const codes = b + i * pitch + column;
      store_pairs(words(codes, zero), i + 1 < k ? words(codes + pitch, zero) : _mm256_setzero_si256(), packed);
    }
}

// Eight rows of eight dwords -> eight columns, each to `stride` bytes behind the one before; only the first `count`.
OCTET_INLINE void store_transposed(const Y (&row)[8], std::byte* to, int64_t stride, int64_t count) {
  Y a[8], b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    a[i * 2] = _mm256_unpacklo_epi32(row[i * 2], row[i * 2 + 1]);
    a[i * 2 + 1] = _mm256_unpackhi_epi32(row[i * 2], row[i * 2 + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]), b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]), b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    if (i < count) store32(to + i * stride, _mm256_permute2x128_si256(b[i], b[i + 4], 0x20));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    if (i + 4 < count) store32(to + (i + 4) * stride, _mm256_permute2x128_si256(b[i], b[i + 4], 0x31));
}

// What lies beyond k in the last pair meets a zero of a.
void pack_columns(const uint8_t* b, int64_t pitch, int32_t zero_point, int64_t n, int64_t k, std::byte* packed) {
  const Y zero = _mm256_set1_epi16(static_cast<int16_t>(zero_point));
  const int64_t pairs = (k + 1) / 2;
  for (int64_t column = 0; column < n; column += kMatMulColumns, packed += pairs * kPairBytes)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t pair = 0; pair < pairs; pair += 8) {
        Y rows[8];
#pragma GCC unroll 8
        for (int64_t i = 0; i < 8; ++i) {
          const int64_t j = smaller(column + half * 8 + i, n - 1);  // beyond the last: columns that nobody stores
          rows[i] = words(b + j * pitch + pair * 2, zero);
        }
        store_transposed(rows, packed + pair * kPairBytes + half * 32, kPairBytes, pairs - pair);
      }
}

// The words of a row, and a zero behind them, for the last pair.
void unpack_row(const uint8_t* codes, int32_t zero_point, int64_t k, int16_t* to) {
  const Y zero = _mm256_set1_epi16(static_cast<int16_t>(zero_point));
  for (int64_t i = 0; i < k; i += kChannelBlock) store32(to + i, words(codes + i, zero));
  to[k] = 0;
}

template <int kRows>
void tile(const int16_t* a, int64_t length, const std::byte* b, int64_t pairs, __m256 scale, float* out, int64_t n,
          int64_t columns) {
  Y sum[kRows][2];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
  for (int64_t i = 0; i < pairs; ++i, b += kPairBytes) {
    const Y b0 = load32(b), b1 = load32(b + 32);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      int32_t pair;
      std::memcpy(&pair, a + r * length + i * 2, sizeof(pair));
      const Y x = _mm256_set1_epi32(pair);
      sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(x, b0));
      sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(x, b1));
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const __m256 low = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[r][0]), scale);
    const __m256 high = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[r][1]), scale);
    float* const to = out + r * n;
    if (columns >= kMatMulColumns) {
      _mm256_storeu_ps(to, low), _mm256_storeu_ps(to + 8, high);
    } else {
      _mm256_maskstore_ps(to, first_floats(columns), low);
      _mm256_maskstore_ps(to + 8, first_floats(columns - 8), high);
    }
  }
}

using Tile = void(const int16_t*, int64_t, const std::byte*, int64_t, __m256, float*, int64_t, int64_t);
constexpr Tile* kTiles[kMatMulRows + 1] = {nullptr, tile<1>, tile<2>, tile<3>, tile<4>};

}  // namespace

void int8_matmul_avx2(const Int8MatMulArgs& args, Range rows) {
  const int64_t pairs = (args.k + 1) / 2, panel = pairs * kPairBytes;
  const int64_t panels = (args.n + kMatMulColumns - 1) / kMatMulColumns;
  const int64_t length = (args.k + kChannelBlock - 1) / kChannelBlock * kChannelBlock + kChannelBlock;
  std::byte* const b = args.scratch;
  auto* const a = reinterpret_cast<int16_t*>(args.scratch + panels * panel);
  const __m256 scale = _mm256_set1_ps(args.scale);
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t batch = row / args.m, end = smaller(rows.end, (batch + 1) * args.m);
    if (args.b_transposed)
      pack_columns(args.b.data + batch * args.n * args.b.pitch, args.b.pitch, args.b.zero_point, args.n, args.k, b);
    else
      pack_rows(args.b.data + batch * args.k * args.b.pitch, args.b.pitch, args.b.zero_point, args.n, args.k, b);
    for (; row < end; row += kMatMulRows) {
      const int64_t count = smaller(kMatMulRows, end - row);
      for (int64_t r = 0; r < count; ++r)
        unpack_row(args.a.data + (row + r) * args.a.pitch, args.a.zero_point, args.k, a + r * length);
      for (int64_t p = 0; p < panels; ++p)
        kTiles[count](a, length, b + p * panel, pairs, scale, args.out + row * args.n + p * kMatMulColumns, args.n,
                      args.n - p * kMatMulColumns);
    }
    row = end;
  }
}

}  // namespace octet::kernels

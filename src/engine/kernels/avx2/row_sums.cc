// The mean over an image in two halves (int8_ops.h) with 256-bit vectors. Bytes are added up in 16-bit lanes, even and
// odd ones apart, which costs no shuffles; after 256 pixels at the latest they move to 32-bit lanes.
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {
namespace {

// 16 channels: words 0..7 of each half are channels 0, 2, 4 ... (even) and 1, 3, 5 ... (odd).
OCTET_INLINE void flush(Y words, int32_t* even, int32_t* odd) {
  store32(even, _mm256_add_epi32(load32(even), _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words))));
  store32(odd, _mm256_add_epi32(load32(odd), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1))));
}

// Adds rows of one image to the sums of 16 channels.
OCTET_INLINE void sum_rows(const QTensor& in, const uint8_t* row, int64_t rows, int32_t* sums) {
  alignas(32) int32_t even[8] = {}, odd[8] = {};
  // One 16-bit lane for each byte: the even channels in the lower half, the odd ones in the upper.
  const Y order = _mm256_setr_epi8(0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10, -1, 12, -1, 14, -1,  //
                                   1, -1, 3, -1, 5, -1, 7, -1, 9, -1, 11, -1, 13, -1, 15, -1);
  Y words = _mm256_setzero_si256();
  int64_t room = 256;  // pixels until a 16-bit lane could overflow
  for (int64_t y = 0; y < rows; ++y, row += in.row_stride)
    for (int64_t x = 0; x < in.w;) {
      const int64_t end = smaller(in.w, x + room);
      room -= end - x;
      for (; x < end; ++x)
        words = _mm256_add_epi16(words,
                                 _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load16(row + x * in.c_pitch)), order));
      if (room > 0) continue;
      flush(words, even, odd);
      words = _mm256_setzero_si256(), room = 256;
    }
  flush(words, even, odd);
  for (int i = 0; i < 8; ++i) sums[2 * i] = even[i], sums[2 * i + 1] = odd[i];
}

// The same for 32 channels, without shuffles.
OCTET_INLINE void sum_rows32(const QTensor& in, const uint8_t* row, int64_t rows, int32_t* sums) {
  const Y low = _mm256_set1_epi16(0xff), zero = _mm256_setzero_si256();
  alignas(32) int32_t even32[16] = {}, odd32[16] = {};
  Y even = zero, odd = zero;
  int64_t room = 256;
  for (int64_t y = 0; y < rows; ++y, row += in.row_stride)
    for (int64_t x = 0; x < in.w;) {
      const int64_t end = smaller(in.w, x + room);
      room -= end - x;
      for (; x < end; ++x) {
        const Y v = load32(row + x * in.c_pitch);
        even = _mm256_add_epi16(even, _mm256_and_si256(v, low));
        odd = _mm256_add_epi16(odd, _mm256_srli_epi16(v, 8));
      }
      if (room > 0) continue;
      flush(even, even32, even32 + 8), flush(odd, odd32, odd32 + 8);
      even = odd = zero, room = 256;
    }
  flush(even, even32, even32 + 8), flush(odd, odd32, odd32 + 8);
  for (int i = 0; i < 16; ++i) sums[2 * i] = even32[i], sums[2 * i + 1] = odd32[i];
}

}  // namespace

void row_sums_avx2(const RowSumsArgs& a, Range rows) {
  const QTensor& in = a.in;
  if (in.c_pitch < 16) return kernels(Isa::kScalar).row_sums(a, rows);
  const int64_t pitch = (in.c + 15) / 16 * 16;
  for (int64_t r = rows.begin; r < rows.end;) {
    const int64_t end = smaller(rows.end, (r / in.h + 1) * in.h);
    const uint8_t* from = in.data + r / in.h * in.image_stride + r % in.h * in.row_stride;
    int64_t c = 0;
    for (; c + 32 <= pitch; c += 32) sum_rows32(in, from + c, end - r, a.sums + r * pitch + c);
    if (c < pitch) sum_rows(in, from + c, end - r, a.sums + r * pitch + c);
    for (int32_t *p = a.sums + (r + 1) * pitch, *last = a.sums + end * pitch; p < last; p += 8)
      store32(p, _mm256_setzero_si256());
    r = end;
  }
}

void mean_of_sums_avx2(const MeanOfSumsArgs& a) {
  const Y start = _mm256_set1_epi32(-static_cast<int32_t>(a.pixels * a.in_zero_point));
  const __m256 m = _mm256_set1_ps(a.multiplier);
  const Limits limits(a.lo, a.hi, a.zero_point);
  for (int64_t c = 0; c < a.channels; c += 16) {
    Y sum0 = start, sum1 = start;
    for (int64_t r = 0; r < a.rows; ++r) {
      sum0 = _mm256_add_epi32(sum0, load32(a.sums + r * a.channels + c));
      sum1 = _mm256_add_epi32(sum1, load32(a.sums + r * a.channels + c + 8));
    }
    const Y v0 = limits.round(_mm256_mul_ps(_mm256_cvtepi32_ps(sum0), m));
    const Y v1 = limits.round(_mm256_mul_ps(_mm256_cvtepi32_ps(sum1), m));
    store16(a.out + c, limits.pack(v0, v1));
  }
}

}  // namespace octet::kernels

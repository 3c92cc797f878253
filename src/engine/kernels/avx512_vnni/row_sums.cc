// The mean over an image in two halves (int8_ops.h) with 512-bit vectors. Bytes are added up in 16-bit lanes, even and
// odd ones apart, which costs no shuffles; after 256 pixels at the latest they move to 32-bit lanes.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

// Sums of 64 channels: lane k of s[j] is that of channel 4 k + j.
struct Sums {
  Z s[4];
};

OCTET_INLINE void flush(Sums& sums, Z even, Z odd) {
  const Z low = _mm512_set1_epi32(0xffff);
  sums.s[0] = _mm512_add_epi32(sums.s[0], _mm512_and_si512(even, low));
  sums.s[1] = _mm512_add_epi32(sums.s[1], _mm512_and_si512(odd, low));
  sums.s[2] = _mm512_add_epi32(sums.s[2], _mm512_srli_epi32(even, 16));
  sums.s[3] = _mm512_add_epi32(sums.s[3], _mm512_srli_epi32(odd, 16));
}

// The first `blocks` of 16 channels, in order.
OCTET_INLINE void store(const Sums& sums, int32_t* to, int64_t blocks) {
  const Z a = _mm512_unpacklo_epi32(sums.s[0], sums.s[1]), b = _mm512_unpacklo_epi32(sums.s[2], sums.s[3]);
  const Z c = _mm512_unpackhi_epi32(sums.s[0], sums.s[1]), d = _mm512_unpackhi_epi32(sums.s[2], sums.s[3]);
  // Lane L of q_i: channels 16 L + 4 i and on.
  const Z q0 = _mm512_unpacklo_epi64(a, b), q1 = _mm512_unpackhi_epi64(a, b);
  const Z q2 = _mm512_unpacklo_epi64(c, d), q3 = _mm512_unpackhi_epi64(c, d);
  const Z x0 = _mm512_shuffle_i32x4(q0, q1, 0x44), x1 = _mm512_shuffle_i32x4(q2, q3, 0x44);
  const Z x2 = _mm512_shuffle_i32x4(q0, q1, 0xee), x3 = _mm512_shuffle_i32x4(q2, q3, 0xee);
  const Z out[4] = {_mm512_shuffle_i32x4(x0, x1, 0x88), _mm512_shuffle_i32x4(x0, x1, 0xdd),
                    _mm512_shuffle_i32x4(x2, x3, 0x88), _mm512_shuffle_i32x4(x2, x3, 0xdd)};
  for (int64_t i = 0; i < blocks; ++i) _mm512_storeu_si512(to + i * 16, out[i]);
}

// Consecutive rows of one image, up to 64 channels.
OCTET_INLINE Sums sum_rows(const QTensor& in, const uint8_t* row, int64_t rows, __mmask64 mask) {
  const Z zero = _mm512_setzero_si512(), low = _mm512_set1_epi16(0xff);
  Sums sums{{zero, zero, zero, zero}};
  Z even = zero, odd = zero;
  int64_t room = 256;  // pixels until a 16-bit lane could overflow
  for (int64_t y = 0; y < rows; ++y, row += in.row_stride)
    for (int64_t x = 0; x < in.w;) {
      const int64_t end = smaller(in.w, x + room);
      room -= end - x;
      for (; x < end; ++x) {
        const Z v = _mm512_maskz_loadu_epi8(mask, row + x * in.c_pitch);
        even = _mm512_add_epi16(even, _mm512_and_si512(v, low));
        odd = _mm512_add_epi16(odd, _mm512_srli_epi16(v, 8));
      }
      if (room > 0) continue;
      flush(sums, even, odd);
      even = odd = zero, room = 256;
    }
  flush(sums, even, odd);
  return sums;
}

}  // namespace

void row_sums_avx512(const RowSumsArgs& a, Range rows) {
  const QTensor& in = a.in;
  if (in.c_pitch < 16) return kernels(Isa::kScalar).row_sums(a, rows);
  const int64_t pitch = (in.c + 15) / 16 * 16;
  for (int64_t r = rows.begin; r < rows.end;) {
    const int64_t end = smaller(rows.end, (r / in.h + 1) * in.h);
    const uint8_t* from = in.data + r / in.h * in.image_stride + r % in.h * in.row_stride;
    for (int64_t c = 0; c < pitch; c += 64) {
      const int64_t width = smaller(64, pitch - c);
      const __mmask64 mask = width == 64 ? ~0ull : (1ull << width) - 1;
      store(sum_rows(in, from + c, end - r, mask), a.sums + r * pitch + c, width / 16);
    }
    for (int32_t *p = a.sums + (r + 1) * pitch, *last = a.sums + end * pitch; p < last; p += 16)
      _mm512_storeu_si512(p, _mm512_setzero_si512());
    r = end;
  }
}

void mean_of_sums_avx512(const MeanOfSumsArgs& a) {
  const Z start = _mm512_set1_epi32(-static_cast<int32_t>(a.pixels * a.in_zero_point));
  const Z zero_point = _mm512_set1_epi32(a.zero_point);
  const __m512 m = _mm512_set1_ps(a.multiplier), low = _mm512_set1_ps(static_cast<float>(a.lo - a.zero_point)),
               high = _mm512_set1_ps(static_cast<float>(a.hi - a.zero_point));
  for (int64_t c = 0; c < a.channels; c += 16) {
    Z sum = start;
    for (int64_t r = 0; r < a.rows; ++r) sum = _mm512_add_epi32(sum, _mm512_loadu_si512(a.sums + r * a.channels + c));
    const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), m);
    const Z q = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, low), high));
    store16(a.out + c, _mm512_cvtepi32_epi8(_mm512_add_epi32(q, zero_point)));
  }
}

}  // namespace octet::kernels

// A layer over one pixel (PixelConvFunction): the packed weights are read once, four blocks of channels side by side.
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/avx512_vnni/lookup.h"
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

OCTET_INLINE Z broadcast_dword(const uint8_t* p) {
  return _mm512_broadcastd_epi32(_mm_loadu_si32(p));
}

template <int V>
OCTET_INLINE void multiply(const ConvArgs& a, int64_t block, int64_t dwords, Z (&sum)[4]) {
  const int8_t* w = a.weights + block * dwords * 64;
  const uint8_t* x = a.in.data;
  Z odd[V];
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    sum[v] = _mm512_loadu_si512(a.acc_init + (block + v) * 16);
    odd[v] = _mm512_setzero_si512();
  }
  int64_t d = 0;
  for (; d + 2 <= dwords; d += 2) {
    const Z x0 = broadcast_dword(x + d * 4), x1 = broadcast_dword(x + d * 4 + 4);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const int8_t* own = w + (v * dwords + d) * 64;
      sum[v] = _mm512_dpbusd_epi32(sum[v], x0, _mm512_loadu_si512(own));
      odd[v] = _mm512_dpbusd_epi32(odd[v], x1, _mm512_loadu_si512(own + 64));
    }
  }
  if (d < dwords)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      sum[v] = _mm512_dpbusd_epi32(sum[v], broadcast_dword(x + d * 4), _mm512_loadu_si512(w + (v * dwords + d) * 64));
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) sum[v] = _mm512_add_epi32(sum[v], odd[v]);
}

}  // namespace

void pixel_conv_avx512_vnni(const ConvArgs& a) {
  const Epilogue& e = a.epilogue;
  const int64_t dwords = pixel_bytes(a.geometry) / 4, blocks = (a.geometry.out_channels + 15) / 16;
  const Z zero_point = _mm512_set1_epi32(e.out.zero_point);
  const __m512 low = _mm512_set1_ps(static_cast<float>(e.lo - e.out.zero_point)),
               high = _mm512_set1_ps(static_cast<float>(e.hi - e.out.zero_point));
  for (int64_t block = 0; block < blocks; block += 4) {
    const int64_t count = smaller(4, blocks - block);
    Z sum[4];
    if (count == 4) {
      multiply<4>(a, block, dwords, sum);
    } else if (count == 3) {
      multiply<3>(a, block, dwords, sum);
    } else if (count == 2) {
      multiply<2>(a, block, dwords, sum);
    } else {
      multiply<1>(a, block, dwords, sum);
    }
    const auto rounded = [&](int64_t v) __attribute__((always_inline)) {
      __m512 y = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[v]), _mm512_loadu_ps(e.multiplier + (block + v) * kChannelBlock));
      if (e.function.has_tails()) y = draw_in(y, e.function);
      return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(y, low), high));
    };
    if (e.function) {
      const auto steps = [&](int64_t v) __attribute__((always_inline)) {
        return v < count ? rounded(v) : _mm512_setzero_si512();
      };
      const Z codes = _mm512_permutexvar_epi32(
          pack_order(),
          function_codes(_mm512_packs_epi32(steps(0), steps(1)), _mm512_packs_epi32(steps(2), steps(3)), e.function));
      const int64_t bytes = smaller(count * 16, e.out.c_pitch);
      _mm512_mask_storeu_epi8(e.out.data + block * 16, bytes >= 64 ? ~0ull : (1ull << bytes) - 1, codes);
      continue;
    }
    for (int64_t v = 0; v < count; ++v) {
      const int64_t channel = (block + v) * 16;
      const Z q = rounded(v);
      const __m128i codes = _mm512_cvtepi32_epi8(_mm512_add_epi32(q, zero_point));
      if (e.out.c_pitch < 16) {
        _mm_storeu_si32(e.out.data, codes);
      } else {
        store16(e.out.data + channel, codes);
      }
    }
  }
  if (e.table) look_up(e.table, e.out.data, e.out.data, e.out.c_pitch);
}

}  // namespace octet::kernels

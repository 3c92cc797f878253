// Winograd convolution with the 256-bit vpdpwssd of AVX-VNNI: products of 6 tiles x 16 output channels.
#include "engine/kernels/winograd/kernel.h"

#include "engine/kernels/avx2/winograd/rows.h"

namespace octet::kernels {
namespace {

struct AvxVnniWinograd {
  using Vectors = Vectors32;
  static constexpr WinogradBlocking kBlocking{.chunk = 16, .tiles = 6, .unit = 1, .block_tiles = 48, .group = 4};

  static OCTET_INLINE Vectors::Words widen(const uint8_t* p) { return (Vectors::Words)_mm256_cvtepu8_epi16(load16(p)); }
  static OCTET_INLINE Vectors::SignedWords widen(const int8_t* p) {
    return (Vectors::SignedWords)_mm256_cvtepi8_epi16(load16(p));
  }

  template <int P, int V>
  static void multiply(const int16_t* v, const int16_t* u, int64_t, int64_t chunks, uint32_t* m, Ahead ahead) {
    Y acc[P][2];
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p) acc[p][0] = acc[p][1] = _mm256_setzero_si256();
    for (; chunks > 0; --chunks, v += P * 16, u += 8 * 32) {
      ahead.fetch<1>(0);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        const Y u0 = load32(u + k * 32), u1 = load32(u + k * 32 + 16);
#pragma GCC unroll 6
        for (int p = 0; p < P; ++p) {
          const Y pair = _mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(v + p * 16 + k * 2)));
          acc[p][0] = _mm256_dpwssd_avx_epi32(acc[p][0], pair, u0);
          acc[p][1] = _mm256_dpwssd_avx_epi32(acc[p][1], pair, u1);
        }
      }
    }
    store_tiles<P>(acc, m);
  }

  using Rows = FinishRows;
};

}  // namespace

const WinogradKernel winograd_avx_vnni{AvxVnniWinograd::kBlocking, Winograd<AvxVnniWinograd>::prepare,
                                       Winograd<AvxVnniWinograd>::run};

}  // namespace octet::kernels

// Winograd convolution with vpmaddwd: products of 6 tiles x 16 output channels.
#include "engine/kernels/winograd/kernel.h"

#include "engine/kernels/avx2/winograd/rows.h"

namespace octet::kernels {
namespace {

struct Avx2Winograd {
  using Vectors = Vectors32;
  static constexpr WinogradBlocking kBlocking{.chunk = 16, .tiles = 6, .unit = 1, .block_tiles = 24, .group = 4};

  // Two channels of one tile times 16 output channels. By hand: 12 sums, two weights and two temporaries are all the
  // registers there are, and the compiler would rather sum the products of many pairs first.
  static OCTET_INLINE void add(const int16_t* pair, Y u0, Y u1, Y& acc0, Y& acc1) {
    Y t0, t1;
    asm("vpbroadcastd %[pair], %[t0]\n\t"
        "vpmaddwd %[u0], %[t0], %[t1]\n\t"
        "vpmaddwd %[u1], %[t0], %[t0]\n\t"
        "vpaddd %[t1], %[acc0], %[acc0]\n\t"
        "vpaddd %[t0], %[acc1], %[acc1]"
        : [acc0] "+x"(acc0), [acc1] "+x"(acc1), [t0] "=&x"(t0), [t1] "=&x"(t1)
        : [pair] "m"(*reinterpret_cast<const int32_t(*)[1]>(pair)), [u0] "x"(u0), [u1] "x"(u1));
  }

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
        for (int p = 0; p < P; ++p) add(v + p * 16 + k * 2, u0, u1, acc[p][0], acc[p][1]);
      }
    }
    store_tiles<P>(acc, m);
  }

  using Rows = FinishRows;
};

}  // namespace

const WinogradKernel winograd_avx2{Avx2Winograd::kBlocking, Winograd<Avx2Winograd>::prepare,
                                   Winograd<Avx2Winograd>::run};

}  // namespace octet::kernels

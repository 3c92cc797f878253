// What the Winograd convolutions with vpdpwssd share whose weights are transformed when they are prepared.
#pragma once
#include "engine/kernels/winograd/kernel.h"

#include "engine/kernels/avx512_vnni/conv/pixel_codes.h"

namespace octet::kernels {
namespace {

struct Avx512Winograd {
  using Vectors = Vectors64;
  using Codes = PixelCodes;
  static constexpr WinogradBlocking kBlocking{.chunk = 32, .tiles = 6, .unit = 4, .block_tiles = 54, .group = 4};

  // A broadcast by itself: as an operand of the product it would cost a load for each of them.
  static OCTET_INLINE Z broadcast(const int16_t* pair) {
    Z v;
    asm("vpbroadcastd %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const int32_t(*)[1]>(pair)));
    return v;
  }

  static OCTET_INLINE Vectors::Words widen(const uint8_t* p) {
    return (Vectors::Words)_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static OCTET_INLINE Vectors::SignedWords widen(const int8_t* p) {
    return (Vectors::SignedWords)_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }

  template <int P, int V>
  static void multiply(const int16_t* v, const int16_t* u, int64_t u_block, int64_t chunks, uint32_t* m, Ahead ahead) {
    Z acc[P][V];
    // Each by itself: the compiler would copy one, and copies take the ports of the products.
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) asm volatile("vpxord %0, %0, %0" : "=v"(acc[p][i]));
    // A pointer for each block, hidden from the compiler, which would keep the distance to every line instead.
    const int16_t* blocks[V];
#pragma GCC unroll 4
    for (int i = 0; i < V; ++i) {
      blocks[i] = u + i * u_block;
      asm("" : "+r"(blocks[i]));
    }
    for (; chunks > 0; --chunks, v += P * 32) {
      ahead.fetch<V>(u_block);
#pragma GCC unroll 16
      for (int k = 0; k < 16; ++k) {
        Z weight[V];
#pragma GCC unroll 4
        for (int i = 0; i < V; ++i) weight[i] = _mm512_load_si512(blocks[i] + k * 32);
#pragma GCC unroll 6
        for (int p = 0; p < P; ++p) {
          const Z pair = broadcast(v + p * 32 + k * 2);
#pragma GCC unroll 4
          for (int i = 0; i < V; ++i) acc[p][i] = _mm512_dpwssd_epi32(acc[p][i], pair, weight[i]);
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) blocks[i] += 16 * 32;
    }
#pragma GCC unroll 6
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int i = 0; i < V; ++i) _mm512_storeu_si512(m + (p * 36 * V + i) * 16, acc[p][i]);
  }

  struct Rows {
    const Epilogue& e;
    Constants constants;
    explicit Rows(const Epilogue& epilogue) : e(epilogue), constants(make_constants(epilogue)) {}
    template <int V>
    void operator()(const int32_t* acc, int64_t pixels, int64_t channel, int64_t n, int64_t y, int64_t x) const {
      finish<V>({acc, pixels, channel, n, y, x}, e, constants);
    }
  };
};

}  // namespace
}  // namespace octet::kernels

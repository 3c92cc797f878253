#include "engine/kernels/peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace octet::kernels {
namespace {

// The empty assembler statements make the compiler believe that a value changed, so that it neither hoists nor drops
// the product. Every function has its own target, so this file needs no flags and leaks no vector code.
constexpr int kAccumulators = 12;

void scalar_int8(int64_t iterations) {
  int32_t acc[4] = {}, x = 3, w = 5;
  for (int64_t i = 0; i < iterations; ++i)
    for (int32_t& a : acc) {
      asm volatile("" : "+r"(x));
      a += x * w;
      asm volatile("" : "+r"(a));
    }
}

void scalar_float(int64_t iterations) {
  float acc[4] = {}, x = 3, w = 5;
  for (int64_t i = 0; i < iterations; ++i)
    for (float& a : acc) {
#if defined(__x86_64__)
      asm volatile("" : "+x"(x));
      a += x * w;
      asm volatile("" : "+x"(a));
#else
      asm volatile("" : "+w"(x));
      a += x * w;
      asm volatile("" : "+w"(a));
#endif
    }
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) void avx2_int8(int64_t iterations) {
  __m256i acc[kAccumulators] = {}, x = _mm256_set1_epi16(3);
  const __m256i w = _mm256_set1_epi16(5);
  for (int64_t i = 0; i < iterations; ++i)
#pragma GCC unroll 12
    for (__m256i& a : acc) {
      asm volatile("" : "+x"(x));
      a = _mm256_add_epi32(a, _mm256_madd_epi16(x, w));
      asm volatile("" : "+x"(a));
    }
}

__attribute__((target("avx2,fma"))) void avx2_float(int64_t iterations) {
  __m256 acc[kAccumulators] = {};
  const __m256 x = _mm256_set1_ps(3), w = _mm256_set1_ps(5);
  for (int64_t i = 0; i < iterations; ++i)
#pragma GCC unroll 12
    for (__m256& a : acc) {
      a = _mm256_fmadd_ps(x, w, a);
      asm volatile("" : "+x"(a));
    }
}

__attribute__((target("avx2,avxvnni"))) void avx_vnni_int8(int64_t iterations) {
  __m256i acc[kAccumulators] = {};
  const __m256i x = _mm256_set1_epi8(3), w = _mm256_set1_epi8(5);
  for (int64_t i = 0; i < iterations; ++i)
#pragma GCC unroll 12
    for (__m256i& a : acc) {
      a = _mm256_dpbusd_avx_epi32(a, x, w);
      asm volatile("" : "+x"(a));
    }
}

__attribute__((target("avx512f,avx512vnni"))) void avx512_vnni_int8(int64_t iterations) {
  __m512i acc[kAccumulators] = {};
  const __m512i x = _mm512_set1_epi32(0x03030303), w = _mm512_set1_epi32(0x05050505);
  for (int64_t i = 0; i < iterations; ++i)
#pragma GCC unroll 12
    for (__m512i& a : acc) {
      a = _mm512_dpbusd_epi32(a, x, w);
      asm volatile("" : "+v"(a));
    }
}

__attribute__((target("avx512f"))) void avx512_float(int64_t iterations) {
  __m512 acc[kAccumulators] = {};
  const __m512 x = _mm512_set1_ps(3), w = _mm512_set1_ps(5);
  for (int64_t i = 0; i < iterations; ++i)
#pragma GCC unroll 12
    for (__m512& a : acc) {
      a = _mm512_fmadd_ps(x, w, a);
      asm volatile("" : "+v"(a));
    }
}

__attribute__((target("amx-tile,amx-int8"))) void amx_int8(int64_t iterations) {
  struct alignas(64) TileConfig {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes_per_row[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int t = 0; t < 8; ++t) config.bytes_per_row[t] = 64, config.rows[t] = 16;
  // Does not claim to read all of it: without the clobber the stores above may be dropped.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < iterations; ++i) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
}

#endif

}  // namespace

PeakLoop int8_peak_loop(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kAmxInt8:
      return {"tdpbusd", 4 * 16 * 16 * 64, amx_int8};
    case Isa::kAvx512Vnni:
      return {"vpdpbusd zmm", kAccumulators * 64, avx512_vnni_int8};
    case Isa::kAvxVnni:
      return {"vpdpbusd ymm", kAccumulators * 32, avx_vnni_int8};
    case Isa::kAvx2:
      return {"vpmaddwd ymm", kAccumulators * 16, avx2_int8};
    default:
      break;
  }
#endif
  return {"scalar", 4, scalar_int8};
}

PeakLoop float_peak_loop(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kAmxInt8:
    case Isa::kAvx512Vnni:
      return {"vfmadd zmm", kAccumulators * 16, avx512_float};
    case Isa::kAvxVnni:
    case Isa::kAvx2:
      return {"vfmadd ymm", kAccumulators * 8, avx2_float};
    default:
      break;
  }
#endif
  return {"scalar", 4, scalar_float};
}

}  // namespace octet::kernels

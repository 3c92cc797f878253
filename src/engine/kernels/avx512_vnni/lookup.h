// 256-entry tables applied to bytes. With AVX512-VBMI a table is four vectors and two permutes; without it, plain
// loads.
#pragma once
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

OCTET_INLINE bool has_vbmi() {
  static const bool vbmi = __builtin_cpu_supports("avx512vbmi");
  return vbmi;
}

// vpermi2b: byte i of 128 in (low, high), by the low seven bits of `index`. By hand, because the file is compiled
// without AVX512-VBMI.
OCTET_INLINE Z permute128(Z index, Z low, Z high) {
  asm("vpermi2b %2, %1, %0" : "+v"(index) : "v"(low), "v"(high));
  return index;
}
struct Table64 {
  Z t0, t1, t2, t3;
};
OCTET_INLINE Table64 load_table(const uint8_t* table) {
  return {_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64), _mm512_loadu_si512(table + 128),
          _mm512_loadu_si512(table + 192)};
}
OCTET_INLINE Z look_up64(Z index, const Table64& t) {
  return _mm512_mask_mov_epi8(permute128(index, t.t0, t.t1), _mm512_movepi8_mask(index), permute128(index, t.t2, t.t3));
}
// table[index] for 64 bytes; only with has_vbmi().
OCTET_INLINE Z look_up64(Z index, const uint8_t* table) {
  return look_up64(index, load_table(table));
}

// out[i] = table[in[i]]; in and out may be the same.
inline void look_up(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t bytes) {
  if (!has_vbmi()) {
    for (int64_t i = 0; i < bytes; ++i) out[i] = table[in[i]];
    return;
  }
  const Table64 t = load_table(table);
  int64_t i = 0;
  for (; i + 64 <= bytes; i += 64) _mm512_storeu_si512(out + i, look_up64(_mm512_loadu_si512(in + i), t));
  if (i < bytes) {
    const __mmask64 mask = (1ull << (bytes - i)) - 1;
    _mm512_mask_storeu_epi8(out + i, mask, look_up64(_mm512_maskz_loadu_epi8(mask, in + i), t));
  }
}

}  // namespace
}  // namespace octet::kernels

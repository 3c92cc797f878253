// 256-entry tables applied to bytes. With AVX512-VBMI a table is four vectors and two permutes; without it, plain
// loads.
#pragma once
#include "engine/kernels/avx512_vnni/vector.h"

namespace octet::kernels {
namespace {

__attribute__((target("avx512vbmi"))) inline void look_up_vbmi(const uint8_t* table, const uint8_t* in, uint8_t* out,
                                                               int64_t bytes) {
  const Z t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
  const Z t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
  for (int64_t i = 0; i < bytes; i += 64) {
    const __mmask64 mask = bytes - i >= 64 ? ~0ull : (1ull << (bytes - i)) - 1;
    const Z index = _mm512_maskz_loadu_epi8(mask, in + i);
    const Z low = _mm512_permutex2var_epi8(t0, index, t1), high = _mm512_permutex2var_epi8(t2, index, t3);
    _mm512_mask_storeu_epi8(out + i, mask, _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high));
  }
}

// out[i] = table[in[i]]; in and out may be the same.
inline void look_up(const uint8_t* table, const uint8_t* in, uint8_t* out, int64_t bytes) {
  static const bool vbmi = __builtin_cpu_supports("avx512vbmi");
  if (vbmi) return look_up_vbmi(table, in, out, bytes);
  for (int64_t i = 0; i < bytes; ++i) out[i] = table[in[i]];
}

}  // namespace
}  // namespace octet::kernels

// 256-entry tables applied to bytes. With AVX512-VBMI a table is four vectors and two permutes; without it, plain
// loads.
#pragma once
#include "engine/kernels/avx512_vnni/vector.h"
#include "engine/kernels/code_function.h"

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

// vpermb: bytes of `table` by the low six bits of `index`; in `lanes` alone, or in all.
OCTET_INLINE Z permute64(Z index, const uint8_t* table) {
  Z out;
  asm("vpermb %2, %1, %0" : "=v"(out) : "v"(index), "m"(*reinterpret_cast<const uint8_t(*)[64]>(table)));
  return out;
}
OCTET_INLINE Z permute64_by(Z index, Z bytes) {
  asm("vpermb %1, %0, %0" : "+v"(index) : "v"(bytes));
  return index;
}
OCTET_INLINE void permute64(Z& out, __mmask64 lanes, Z index, const uint8_t* table) {
  asm("vpermb %3, %2, %0%{%1%}"
      : "+v"(out)
      : "Yk"(lanes), "v"(index), "m"(*reinterpret_cast<const uint8_t(*)[64]>(table)));
}

// Sums in steps, with less weight far out (CodeFunction::tails). The product is exact, so the sum rounds once.
OCTET_INLINE __m512 draw_in(__m512 v, const CodeFunction& f) {
  const __m512 inner = _mm512_set1_ps(static_cast<float>(kInnerSteps)),
               near = _mm512_min_ps(_mm512_max_ps(v, _mm512_sub_ps(_mm512_setzero_ps(), inner)), inner);
  return _mm512_fmadd_ps(_mm512_sub_ps(v, near), _mm512_set1_ps(f.tails), near);
}

// Without AVX512-VBMI, word by word.
__attribute__((noinline)) inline Z function_codes_by_words(Z low, Z high, const CodeFunction& f) {
  alignas(64) int16_t steps[64];
  alignas(64) uint8_t codes[64];
  _mm512_store_si512(steps, low), _mm512_store_si512(steps + 32, high);
  for (int i = 0; i < 64; ++i) {
    const int32_t cell = steps[i] >> 8;
    const uint8_t* column = f.rows + (cell & 255);
    const int32_t place = cell < f.turn ? 255 - (steps[i] & 255) : steps[i] & 255;
    int32_t code = column[0];
    for (int32_t r = 1; r <= f.rises; ++r) code += place > column[r * 256];
    codes[i] = static_cast<uint8_t>(code);
  }
  // As vpackuswb would order them.
  const Z first = _mm512_load_si512(codes);
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), first);
}

// Entries of a row of 64 by the low six bits of the index, in four parts: vpermb where there is none.
OCTET_INLINE Z line_entries(Z cell, const uint8_t* row) {
  const auto part = [row](int i) __attribute__((always_inline)) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 16 * i)));
  };
  const __mmask64 odd = _mm512_test_epi8_mask(cell, _mm512_set1_epi8(16)),
                  upper = _mm512_test_epi8_mask(cell, _mm512_set1_epi8(32));
  const Z within = _mm512_and_si512(cell, _mm512_set1_epi8(15));
  Z out = _mm512_shuffle_epi8(part(0), within);
  out = _mm512_mask_shuffle_epi8(out, odd & ~upper, part(1), within);
  out = _mm512_mask_shuffle_epi8(out, upper & ~odd, part(2), within);
  return _mm512_mask_shuffle_epi8(out, upper & odd, part(3), within);
}

// Where the bytes of 64 sums lie after vpackssdw and interleaving: of four vectors, the first two in `low`.
struct LineOrder {
  uint8_t bytes[64] = {};
  constexpr LineOrder() {
    for (int i = 0; i < 64; ++i)
      bytes[i] = static_cast<uint8_t>(2 * (i % 16 / 4 * 8 + i / 16 % 2 * 4 + i % 4) + i / 32);
  }
};

// CodeFunction::lines, with its shift where vpsravw wants it.
struct Lines {
  const uint8_t* rows = nullptr;
  Z shift, shift_up;  // of words; the latter moves the result to the upper byte
};
OCTET_INLINE Lines make_lines(const CodeFunction& f) {
  return {f.lines, _mm512_set1_epi16(static_cast<int16_t>(f.line_shift)),
          _mm512_set1_epi16(static_cast<int16_t>(f.line_shift - 8))};
}

// 64 codes, those of `low` in the even bytes and those of `high` in the odd ones: so a product of bytes with zeros in
// the others is one of words.
template <bool kVbmi>
OCTET_INLINE Z interleaved_line_codes(Z low, Z high, const Lines& lines) {
  constexpr int kSelect = 0xca;  // even ? a : b
  const Z even = _mm512_set1_epi16(255);
  const auto entries = [&](Z cell, int row) __attribute__((always_inline)) {
    const uint8_t* const table = lines.rows + row * kLineCells;
    return kVbmi ? permute64(cell, table) : line_entries(cell, table);
  };
  const Z cell = _mm512_ternarylogic_epi64(even, _mm512_srli_epi16(low, 10), _mm512_srli_epi16(high, 2), kSelect);
  const Z step = _mm512_ternarylogic_epi64(even, _mm512_srli_epi16(low, 3), _mm512_slli_epi16(high, 5), kSelect);
  const Z slope = entries(cell, 1), place = _mm512_add_epi8(step, entries(cell, 2));
  const Z rise_low = _mm512_maddubs_epi16(_mm512_and_si512(place, even), slope),
          rise_high = _mm512_maddubs_epi16(_mm512_andnot_si512(even, place), slope);
  const Z rise = _mm512_ternarylogic_epi64(even, _mm512_srav_epi16(rise_low, lines.shift),
                                           _mm512_srav_epi16(rise_high, lines.shift_up), kSelect);
  return _mm512_add_epi8(entries(cell, 0), rise);
}
// The same in the order that vpackuswb leaves.
template <bool kVbmi>
OCTET_INLINE Z line_codes(Z low, Z high, const Lines& lines) {
  const Z order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
  return _mm512_shuffle_epi8(interleaved_line_codes<kVbmi>(low, high, lines), order);
}
// The same in the order of the sums that vpackssdw made the words of; only with has_vbmi().
OCTET_INLINE Z ordered_line_codes(Z low, Z high, const Lines& lines) {
  alignas(64) static constexpr LineOrder kOrder;
  return permute64_by(_mm512_load_si512(kOrder.bytes), interleaved_line_codes<true>(low, high, lines));
}

// The function of 64 steps, 32 words in each half -> codes, in the order that vpackuswb leaves.
OCTET_INLINE Z function_codes(Z low, Z high, const CodeFunction& f) {
  if (f.lines) return line_codes<false>(low, high, make_lines(f));
  if (!has_vbmi()) return function_codes_by_words(low, high, f);
  const Z cell = _mm512_packus_epi16(_mm512_srli_epi16(low, 8), _mm512_srli_epi16(high, 8));
  const Z bytes = _mm512_set1_epi16(255), ones = _mm512_set1_epi8(-1);
  Z place = _mm512_packus_epi16(_mm512_and_si512(low, bytes), _mm512_and_si512(high, bytes));
  const __mmask64 backwards = _mm512_cmplt_epi8_mask(cell, _mm512_set1_epi8(static_cast<char>(f.turn)));
  place = _mm512_mask_sub_epi8(place, backwards, ones, place);
  // Quarters of a row by the upper two bits of the cell.
  const __mmask64 upper = _mm512_movepi8_mask(cell), odd = _mm512_test_epi8_mask(cell, _mm512_set1_epi8(64));
  const __mmask64 second = odd & ~upper, third = upper & ~odd, fourth = upper & odd;
  const auto entries = [&](const uint8_t* row) __attribute__((always_inline)) {
    Z out = permute64(cell, row);
    permute64(out, second, cell, row + 64);
    permute64(out, third, cell, row + 128);
    permute64(out, fourth, cell, row + 192);
    return out;
  };
  const uint8_t* row = f.rows;
  Z codes = entries(row);
  for (int32_t i = 0; i < f.rises; ++i) {
    row += 256;
    codes = _mm512_mask_sub_epi8(codes, _mm512_cmpgt_epu8_mask(place, entries(row)), codes, ones);
  }
  return codes;
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

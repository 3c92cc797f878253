// A function of steps (code_function.h) applied to 32 steps at a time: its rows are tables of 256 entries.
#pragma once
#include "engine/kernels/avx2/lookup.h"
#include "engine/kernels/code_function.h"

namespace octet::kernels {
namespace {

class Function {
 public:
  // Sums in steps, with less weight far out (CodeFunction::tails). The product is exact, so the sum rounds once.
  static OCTET_INLINE __m256 draw_in(__m256 v, const CodeFunction& f) {
    const __m256 inner = _mm256_set1_ps(static_cast<float>(kInnerSteps)),
                 near = _mm256_min_ps(_mm256_max_ps(v, _mm256_sub_ps(_mm256_setzero_ps(), inner)), inner);
    return _mm256_fmadd_ps(_mm256_sub_ps(v, near), _mm256_set1_ps(f.tails), near);
  }
  explicit Function(const CodeFunction& f) : rises_(f.rises), turn_(_mm256_set1_epi8(static_cast<char>(f.turn))) {
    if (f.lines) {
      for (int32_t i = 0; i < 3; ++i) lines_[i] = Lookup64(f.lines + i * kLineCells);
      shift_ = f.line_shift;
    } else {
      for (int32_t i = 0; i <= f.rises; ++i) rows_[i] = Lookup(f.rows + i * 256);
    }
  }
  // 16 steps in each operand -> codes, in the order that vpackuswb leaves.
  __attribute__((noinline)) Y operator()(Y low, Y high) const {
    if (shift_ > 0) return on_lines(low, high);
    const Y cell = _mm256_packus_epi16(_mm256_srli_epi16(low, 8), _mm256_srli_epi16(high, 8));
    const Y bytes = _mm256_set1_epi16(255), one = _mm256_set1_epi8(1);
    Y place = _mm256_packus_epi16(_mm256_and_si256(low, bytes), _mm256_and_si256(high, bytes));
    place = _mm256_xor_si256(place, _mm256_cmpgt_epi8(turn_, cell));
    Y codes = rows_[0](cell);
    for (int32_t i = 1; i <= rises_; ++i) {
      const Y rise = rows_[i](cell);
      const Y before = _mm256_cmpeq_epi8(_mm256_max_epu8(place, rise), rise);  // -1 where the place is not above it
      codes = _mm256_add_epi8(codes, _mm256_add_epi8(before, one));
    }
    return codes;
  }

 private:
  // The codes of `low` are in the even bytes until the end, those of `high` in the odd ones.
  OCTET_INLINE Y on_lines(Y low, Y high) const {
    const Y even = _mm256_set1_epi16(255), within = _mm256_set1_epi8(kLineCells - 1), sixteen = _mm256_set1_epi8(16);
    const auto both = [even](Y a, Y b) __attribute__((always_inline)) {
      return _mm256_or_si256(_mm256_and_si256(even, a), _mm256_andnot_si256(even, b));
    };
    Y cells[4] = {_mm256_and_si256(within, both(_mm256_srli_epi16(low, 10), _mm256_srli_epi16(high, 2)))};
    for (int i = 1; i < 4; ++i) cells[i] = _mm256_sub_epi8(cells[i - 1], sixteen);
    const Y step = both(_mm256_srli_epi16(low, 3), _mm256_slli_epi16(high, 5));
    const Y slope = lines_[1](cells), place = _mm256_add_epi8(step, lines_[2](cells));
    const Y rise_low = _mm256_maddubs_epi16(_mm256_and_si256(place, even), slope),
            rise_high = _mm256_maddubs_epi16(_mm256_andnot_si256(even, place), slope);
    const Y rise = both(_mm256_sra_epi16(rise_low, _mm_cvtsi32_si128(shift_)),
                        _mm256_sra_epi16(rise_high, _mm_cvtsi32_si128(shift_ - 8)));
    const Y order = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    return _mm256_shuffle_epi8(_mm256_add_epi8(lines_[0](cells), rise), order);
  }

  Lookup64 lines_[3];  // base, slope, offset
  int32_t shift_ = 0;  // 0: rows
  Lookup rows_[1 + kMostRises];
  int32_t rises_;
  Y turn_;
};

}  // namespace
}  // namespace octet::kernels

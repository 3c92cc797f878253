#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/vector.h"

namespace octet::kernels {

// All codes of the convolution against all of the residual: at most 65,536 sums, eight at a time.
bool residual_sum_fuses_avx2(const Epilogue& e) {
  const __m256 a = _mm256_set1_ps(e.mid_multiplier), b = _mm256_set1_ps(e.residual_multiplier);
  const __m256 low = _mm256_set1_ps(static_cast<float>(e.lo - e.out.zero_point));
  const __m256 high = _mm256_set1_ps(static_cast<float>(e.hi - e.out.zero_point));
  const auto code = [&](__m256 v) __attribute__((always_inline)) {
    return _mm256_round_ps(_mm256_min_ps(_mm256_max_ps(v, low), high), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  };
  __m256 residual[32];
  for (int i = 0; i < 32; ++i) {
    const Y r =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(i * 8 - e.residual.zero_point));
    residual[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(r), b);
  }
  for (int32_t q = e.mid_lo - e.mid_zero_point; q <= e.mid_hi - e.mid_zero_point; ++q) {
    const __m256 mid = _mm256_set1_ps(static_cast<float>(q)), product = _mm256_mul_ps(mid, a);
    __m256 differ = _mm256_setzero_ps();
    for (const __m256 r : residual)
      differ = _mm256_or_ps(
          differ, _mm256_cmp_ps(code(_mm256_add_ps(product, r)), code(_mm256_fmadd_ps(mid, a, r)), _CMP_NEQ_UQ));
    if (_mm256_movemask_ps(differ)) return false;
  }
  return true;
}

}  // namespace octet::kernels

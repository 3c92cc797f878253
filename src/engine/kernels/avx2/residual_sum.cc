// Shortcuts to the sum with a residual, proved for one layer's numbers: all codes of the convolution against all of the
// residual, at most 65,536 sums, eight at a time.
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/vector.h"
#include "engine/kernels/cpu_model.h"

namespace octet::kernels {
namespace {

// For all codes of a residual.
struct Products {
  __m256 of[32];
};

Products exact_products(const Epilogue& e) {
  Products out;
  for (int i = 0; i < 32; ++i) {
    const Y r =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(i * 8 - e.residual.zero_point));
    out.of[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(r), _mm256_set1_ps(e.residual_multiplier));
  }
  return out;
}

Products products_of(const ResidualTables& t) {
  Products out;
  for (int i = 0; i < 32; ++i)
    out.of[i] = _mm256_add_ps(_mm256_loadu_ps(t.low + i % 2 * 8), _mm256_set1_ps(t.high[i / 2]));
  return out;
}

// Whether fma(q_mid, mid_multiplier, p) gives the codes of a product and a sum for all q_mid and all p of `products`.
bool fuses(const Epilogue& e, const Products& products) {
  const Products exact = exact_products(e);
  const __m256 a = _mm256_set1_ps(e.mid_multiplier);
  const __m256 low = _mm256_set1_ps(static_cast<float>(e.lo - e.out.zero_point));
  const __m256 high = _mm256_set1_ps(static_cast<float>(e.hi - e.out.zero_point));
  const auto code = [&](__m256 v) __attribute__((always_inline)) {
    return _mm256_round_ps(_mm256_min_ps(_mm256_max_ps(v, low), high), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  };
  for (int32_t q = e.mid_lo - e.mid_zero_point; q <= e.mid_hi - e.mid_zero_point; ++q) {
    const __m256 mid = _mm256_set1_ps(static_cast<float>(q)), product = _mm256_mul_ps(mid, a);
    __m256 differ = _mm256_setzero_ps();
    for (int i = 0; i < 32; ++i)
      differ = _mm256_or_ps(differ, _mm256_cmp_ps(code(_mm256_add_ps(product, exact.of[i])),
                                                  code(_mm256_fmadd_ps(mid, a, products.of[i])), _CMP_NEQ_UQ));
    if (_mm256_movemask_ps(differ)) return false;
  }
  return true;
}

}  // namespace

bool residual_sum_fuses_avx2(const Epilogue& e) {
  return fuses(e, exact_products(e));
}

// Where a sum lies next to the middle of two codes, its last bits decide, and the tables round otherwise than the
// product. With the zero point in the one or the other, and slightly larger or smaller numbers, other sums are next to
// the middle: an eighth to a half of such tries give all codes in ResNet-50, but none of the first six in two of its 16
// sums.
bool make_residual_tables_avx2(const Epilogue& e, ResidualTables* tables) {
  if (!cpu_model().residual_tables) return false;
  constexpr float kUlp = 1.0f / (1 << 23);
  constexpr float kNudges[] = {0, kUlp, -kUlp, 2 * kUlp, -2 * kUlp};
  const int32_t zero_point = e.residual.zero_point;
  for (const float high : kNudges)
    for (const float low : kNudges)
      for (const bool in_high : {true, false}) {
        for (int32_t i = 0; i < 16; ++i) {
          tables->high[i] =
              static_cast<float>(i * 16 - (in_high ? zero_point : 0)) * e.residual_multiplier * (1 + high);
          tables->low[i] = static_cast<float>(i - (in_high ? 0 : zero_point)) * e.residual_multiplier * (1 + low);
        }
        if (fuses(e, products_of(*tables))) return true;
        if (zero_point == 0) break;
      }
  return false;
}

}  // namespace octet::kernels

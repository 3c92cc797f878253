// Exact INT8 convolution without dot-product instructions. vpmaddubsw would saturate its 16-bit sums, so bytes are
// widened to 16 bits and multiplied by vpmaddwd: even and odd bytes of a dword apart, which leaves the sums in channel
// order.
#include "engine/kernels/avx2/conv_rows.h"
#include "engine/kernels/avx2/functions.h"

namespace octet::kernels {
namespace {

struct WideningDot {
  static constexpr int kPixels = 4;
  struct Weights {
    Y even[2], odd[2];
  };
  static OCTET_INLINE Weights load(const int8_t* w) {
    const Y low = load32(w), high = load32(w + 32);
    return {{_mm256_srai_epi16(_mm256_slli_epi16(low, 8), 8), _mm256_srai_epi16(_mm256_slli_epi16(high, 8), 8)},
            {_mm256_srai_epi16(low, 8), _mm256_srai_epi16(high, 8)}};
  }
  static OCTET_INLINE void add(Y& a0, Y& a1, int32_t four_bytes, const Weights& w) {
    const Y x = _mm256_set1_epi32(four_bytes);
    const Y even = _mm256_and_si256(x, _mm256_set1_epi16(0xff)), odd = _mm256_srli_epi16(x, 8);
    a0 = _mm256_add_epi32(a0, _mm256_add_epi32(_mm256_madd_epi16(even, w.even[0]), _mm256_madd_epi16(odd, w.odd[0])));
    a1 = _mm256_add_epi32(a1, _mm256_add_epi32(_mm256_madd_epi16(even, w.even[1]), _mm256_madd_epi16(odd, w.odd[1])));
  }
};

}  // namespace

void conv_avx2(const ConvArgs& a, Range rows, Range blocks) {
  conv_rows<WideningDot>(a, rows, blocks);
}

}  // namespace octet::kernels

// Exact INT8 convolution without dot-product instructions. vpmaddubsw would saturate its 16-bit sums, so bytes are
// widened to 16 bits and multiplied by vpmaddwd. For images see conv_words.h. For a few pixels, where the weights are
// read once, they are widened inside the product: even and odd bytes of a dword apart, which leaves the sums in channel
// order.
#include <cstdlib>

#include "base/error.h"
#include "engine/kernels/avx2/conv_rows.h"
#include "engine/kernels/avx2/conv_words.h"
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

// Of one thread; grows with the first run of each layer.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::free(bytes_); }
  std::byte* of(int64_t size) {
    if (size > size_) {
      std::free(bytes_);
      size_ = (size + 63) / 64 * 64;
      bytes_ = static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(size_)));
      OCTET_CHECK(bytes_ != nullptr);
    }
    return bytes_;
  }

 private:
  std::byte* bytes_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace

void conv_avx2(const ConvArgs& a, Range rows, Range blocks) {
  const QTensor& out = a.epilogue.out;
  if ((rows.end - rows.begin) * out.w < 4) return conv_rows<WideningDot>(a, rows, blocks);
  static thread_local Scratch scratch;
  conv_words(a, rows, blocks, scratch.of(word_plan(a).scratch_bytes));
}

}  // namespace octet::kernels

// Exact INT8 convolution without dot-product instructions. vpmaddubsw would saturate its 16-bit sums, so bytes are
// widened to 16 bits and multiplied by vpmaddwd, or proven not to reach its limits. The tactics "words" and "bytes" are
// those of words/ and bytes/. "direct" takes few pixels
// too: the weights are read once and widened inside the product, even and odd bytes of a dword apart, which leaves the
// sums in channel order.
#include "engine/kernels/avx2/bytes/pointwise.h"
#include "engine/kernels/avx2/bytes/windows.h"
#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx2/words/conv_rows.h"
#include "engine/kernels/avx2/words/conv_words.h"
#include "engine/kernels/cpu_model.h"

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

// Fewer pixels than this do not pay for widening the weights.
constexpr int64_t kFewPixels = 4;

bool words_apply(const ConvArgs& a) {
  return a.epilogue.out.h * a.epilogue.out.w >= kFewPixels;
}

int64_t words_scratch(const ConvArgs& a) {
  return word_plan(a).scratch_bytes;
}

void run_words(const ConvArgs& a, Range rows, Range blocks) {
  conv_words(a, rows, blocks, a.scratch);
}

// As conv_share(), but the tiles take one block of output channels at a time, so these need not come in pairs.
ConvShare share(const ConvArgs& a, int part, int parts) {
  ConvShare s = conv_share(a, part, parts);
  const int64_t rows = a.epilogue.out.n * a.epilogue.out.h, blocks = conv_layout(a.geometry, a.in.c_pitch).blocks;
  if (s.rows.begin == 0 && s.rows.end == rows) s.blocks = {blocks * part / parts, blocks * (part + 1) / parts};
  return s;
}

// Measured: 22 products a cycle, 6 cycles to finish 16 sums (10 with a residual), 8 cycles to widen 64 weights for each
// chunk of rows.
double words_cost(const ConvArgs& a, int threads) {
  const WordPlan p = word_plan(a);
  const QTensor& out = a.epilogue.out;
  const double pixels = static_cast<double>(out.n * out.h * out.w), blocks = static_cast<double>(p.layout.blocks);
  const double pairs = static_cast<double>(p.layout.segments * p.pairs);
  const double chunks = pixels / static_cast<double>(p.chunk_rows * out.w);
  const double cycles =
      blocks * (pixels * (pairs * 32 / 22 + (a.epilogue.residual.data ? 10 : 6)) + chunks * pairs * 4);
  return cycles / (cpu_model().cycles_per_us * threads);
}

bool is_pointwise(const ConvGeometry& g) {
  return g.kernel_h == 1 && g.kernel_w == 1;
}

// Codes that start at a small zero point: only these have byte windows.
constexpr int32_t kSmallZeroPoint = 64;
// 16-bit sums of the copied codes of a pixel.
constexpr int64_t kMostByteChannels = 4096;

bool bytes_apply(const ConvArgs& a) {
  const ConvGeometry& g = a.geometry;
  if (!words_apply(a) || g.groups != 1 || a.in.c_pitch < 16) return false;
  return is_pointwise(g) ? g.in_channels <= kMostByteChannels : a.in.zero_point < kSmallZeroPoint;
}

int64_t bytes_prepared(const ConvArgs& a) {
  return is_pointwise(a.geometry) ? byte_plan(a).prepared_bytes : 0;
}

void bytes_prepare(const ConvArgs& a, std::byte* prepared) {
  if (is_pointwise(a.geometry)) prepare_bytes(a, prepared);
}

int64_t bytes_scratch(const ConvArgs& a) {
  const int64_t words = word_plan(a).scratch_bytes;
  const int64_t bytes = is_pointwise(a.geometry) ? byte_plan(a).scratch_bytes : byte_window_plan(a).scratch_bytes;
  return words > bytes ? words : bytes;
}

int64_t bytes_kept(const ConvArgs& a) {
  return is_pointwise(a.geometry) ? byte_plan(a).kept_bytes : 0;
}

void run_bytes(const ConvArgs& a, Range rows, Range blocks) {
  if (is_pointwise(a.geometry)) return conv_bytes(a, rows, blocks, a.scratch);
  conv_byte_windows(a, rows, blocks, a.scratch);
}

// Measured: 5 cycles to finish 16 sums (9 with a residual). 1x1: 32 products a cycle, to copy a pixel 8 cycles and one
// for each dword. Windows: 26 products a cycle, 0.6 to copy a dword.
double bytes_cost(const ConvArgs& a, int threads) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  const double pixels = static_cast<double>(out.n * out.h * out.w), taps = static_cast<double>(g.kernel_h * g.kernel_w);
  const double blocks = static_cast<double>(conv_layout(g, a.in.c_pitch).blocks);
  const double dwords = static_cast<double>((g.in_channels + 3) / 4), residual = a.epilogue.residual.data ? 4 : 0;
  double cycles = pixels;
  if (is_pointwise(g)) {
    cycles *= blocks * (dwords * 64 / 32 + 5 + residual) + dwords + 8;
  } else {
    const double copied = static_cast<double>(g.stride_h * g.stride_w) * dwords;
    cycles *= blocks * (taps * dwords * 64 / 26 + 5 + residual) + copied * 0.6;
  }
  return cycles / (cpu_model().cycles_per_us * threads);
}

}  // namespace

void conv_avx2(const ConvArgs& a, Range rows, Range blocks) {
  conv_rows<WideningDot>(a, rows, blocks);
}

ConvTactic words_avx2() {
  return {.name = "words",
          .isa = Isa::kAvx2,
          .applies = words_apply,
          .scratch_bytes = words_scratch,
          .run = run_words,
          .share = share,
          .cost = words_cost};
}

ConvTactic bytes_avx2() {
  return {.name = "bytes",
          .isa = Isa::kAvx2,
          .applies = bytes_apply,
          .prepared_bytes = bytes_prepared,
          .prepare = bytes_prepare,
          .scratch_bytes = bytes_scratch,
          .kept_bytes = bytes_kept,
          .run = run_bytes,
          .share = share,
          .cost = bytes_cost};
}

}  // namespace octet::kernels

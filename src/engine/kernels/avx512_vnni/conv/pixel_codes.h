// The finish of four neighboring pixels of 16 output channels, in registers: for kernels whose sums come tile by tile.
#pragma once
#include "engine/kernels/avx512_vnni/codes_finish.h"

namespace octet::kernels {
namespace {

class PixelCodes {
 public:
  // Whether they can be finished so: codes without a residual, of whole blocks of channels.
  static bool applies(const Epilogue& e) { return has_codes_finish(e) && e.out.c_pitch >= kChannelBlock; }

  explicit PixelCodes(const Epilogue& e) : epilogue_(e), constants_(make_constants(e)) {}

  uint8_t* at(int64_t n, int64_t y, int64_t x, int64_t channel) const {
    const QTensor& out = epilogue_.out;
    return out.data + n * out.image_stride + y * out.row_stride + x * out.c_pitch + channel;
  }
  int64_t row_stride() const { return epilogue_.out.row_stride; }

  // The first `count` of four pixels from `out` = at(...) on. channel: the first of the 16.
  template <typename Sums>
  OCTET_INLINE void store(const Sums (&sums)[4], int64_t channel, uint8_t* out, int64_t count) const {
    const __m512 multiplier = _mm512_loadu_ps(epilogue_.multiplier + channel);
    const auto rounded = [&](const Sums& sum) __attribute__((always_inline)) {
      return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps((Z)sum), multiplier));
    };
    const Z a = rounded(sums[0]), b = rounded(sums[1]), c = rounded(sums[2]), d = rounded(sums[3]);
    Z codes = constants_.lines.rows ? pack_lines(a, b, c, d, constants_.lines)
              : constants_.function ? pack_function(a, b, c, d, constants_)
                                    : pack(a, b, c, d, constants_);
    if (constants_.table) codes = look_up64(codes, constants_.table);
    const int64_t step = epilogue_.out.c_pitch;
    store16(out, _mm512_castsi512_si128(codes));
    if (count > 1) store16(out + step, _mm512_extracti32x4_epi32(codes, 1));
    if (count > 2) store16(out + 2 * step, _mm512_extracti32x4_epi32(codes, 2));
    if (count > 3) store16(out + 3 * step, _mm512_extracti32x4_epi32(codes, 3));
  }

 private:
  const Epilogue& epilogue_;
  Constants constants_;
};

}  // namespace
}  // namespace octet::kernels

// The parts of squeeze-and-excite: the mean over an image in two halves (int8_ops.h), layers over one pixel
// (int8_conv.h).
#include <algorithm>

#include "engine/kernels/scalar/scalar_kernels.h"
#include "numerics/quantize.h"

namespace octet::kernels {
namespace {

void row_sums(const RowSumsArgs& a, Range rows) {
  const QTensor& in = a.in;
  const int64_t pitch = padded_channels(in.c);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    int32_t* own = a.sums + r * pitch;
    std::fill(own, own + pitch, 0);
    // Row 0 of an image, and the first row of the range, begin a sum.
    const int64_t first = std::max(rows.begin, r / in.h * in.h);
    int32_t* sums = a.sums + first * pitch;
    const uint8_t* row = in.data + r / in.h * in.image_stride + r % in.h * in.row_stride;
    for (int64_t x = 0; x < in.w; ++x, row += in.c_pitch)
      for (int64_t c = 0; c < in.c; ++c) sums[c] += row[c];
  }
}

void mean_of_sums(const MeanOfSumsArgs& a) {
  for (int64_t c = 0; c < a.channels; ++c) {
    // Modulo 2^32, as vectors add: a hostile engine file may have other bytes than sums there.
    auto sum = 0u - static_cast<uint32_t>(a.pixels * a.in_zero_point);
    for (int64_t r = 0; r < a.rows; ++r) sum += static_cast<uint32_t>(a.sums[r * a.channels + c]);
    a.out[c] =
        static_cast<uint8_t>(numerics::requantize(static_cast<int32_t>(sum), a.multiplier, a.zero_point, a.lo, a.hi));
  }
}

void pixel_conv(const ConvArgs& a) {
  kernels(Isa::kScalar).conv(a, Range{0, 1}, Range{0, padded_channels(a.geometry.out_channels) / kChannelBlock});
}

}  // namespace

void add_scalar_row_sums(KernelTable& table) {
  table.row_sums = {row_sums};
  table.mean_of_sums = {mean_of_sums};
  table.pixel_conv = {pixel_conv};
}

}  // namespace octet::kernels

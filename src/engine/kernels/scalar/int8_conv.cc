#include <algorithm>
#include <array>
#include <cstring>

#include "engine/kernels/float_limits.h"
#include "engine/kernels/scalar/scalar_kernels.h"
#include "numerics/quantize.h"

namespace octet::kernels {
namespace {

using numerics::requantize;
using numerics::requantize_with_residual;

// From a sum in steps to its code.
uint8_t apply(const CodeFunction& f, float v) {
  const float inner = static_cast<float>(kInnerSteps), near = std::min(std::max(v, -inner), inner);
  const int32_t step = numerics::round_to_int(near + (v - near) * f.tails, kLeastStep, kGreatestStep, 0);
  if (f.lines) {
    const uint8_t* line = f.lines + ((step >> 10) & (kLineCells - 1));
    const auto place = static_cast<uint8_t>((step >> 3) + line[2 * kLineCells]);
    return static_cast<uint8_t>(line[0] + (static_cast<int8_t>(line[kLineCells]) * place >> f.line_shift));
  }
  const int32_t cell = step >> 8;
  const uint8_t* column = f.rows + (cell & 255);
  const int32_t place = cell < f.turn ? 255 - (step & 255) : step & 255;
  uint8_t code = column[0];
  for (int32_t i = 1; i <= f.rises; ++i) code = static_cast<uint8_t>(code + (place > column[i * 256]));
  return code;
}

// Writes output channel oc of pixel (n, y, x).
void finish(const Epilogue& e, int32_t acc, int64_t oc, int64_t n, int64_t y, int64_t x) {
  if (e.out.data == nullptr) {
    const int64_t at = ((n * e.out.h + y) * e.out.w + x) * e.out.c + oc;
    float v = static_cast<float>(acc) * e.multiplier[oc];
    if (e.float_residual) v = v + e.float_residual[at];
    e.float_out[at] = limited(v, e.float_lo, e.float_hi);
    return;
  }
  uint8_t& out = e.out.data[n * e.out.image_stride + y * e.out.row_stride + x * e.out.c_pitch + oc];
  const auto residual = [&] {
    return e.residual.data[n * e.residual.image_stride + y * e.residual.row_stride + x * e.residual.c_pitch + oc] -
           e.residual.zero_point;
  };
  const auto middle = [&] {
    return requantize(acc, e.multiplier[oc], e.mid_zero_point, e.mid_lo, e.mid_hi) - e.mid_zero_point;
  };
  if (e.function) {
    float v =
        e.rounds_twice ? static_cast<float>(middle()) * e.mid_multiplier : static_cast<float>(acc) * e.multiplier[oc];
    if (e.residual.data) v = v + static_cast<float>(residual()) * e.residual_multiplier;
    out = apply(e.function, v);
    return;
  }
  int32_t q;
  if (e.residual.data == nullptr) {
    q = requantize(acc, e.multiplier[oc], e.out.zero_point, e.lo, e.hi);
  } else if (e.rounds_twice) {
    q = numerics::add_quantized(middle(), e.mid_multiplier, residual(), e.residual_multiplier, e.out.zero_point, e.lo,
                                e.hi);
  } else {
    q = requantize_with_residual(acc, e.multiplier[oc], residual(), e.residual_multiplier, e.out.zero_point, e.lo,
                                 e.hi);
  }
  out = e.table ? e.table[q] : static_cast<uint8_t>(q);
}

const uint8_t* first_byte(const ConvArgs& a, int64_t n, int64_t y, int64_t x) {
  const ConvGeometry& g = a.geometry;
  return a.in.data + n * a.in.image_stride + (y * g.stride_h - g.pad_top) * a.in.row_stride +
         (x * g.stride_w - g.pad_left) * a.in.c_pitch;
}

// [output channel][4 input channels], as the packed weights are.
using BlockSums = std::array<int32_t, kChannelBlock * 4>;

// Adds the products of a run of input channels to the sums of a block. Written so that a compiler makes vectors of it
// for any CPU: sums of its own, which no weight can be, and the four codes as often as there are output channels.
void add_products(const uint8_t* run, const int8_t* weights, int64_t dwords, BlockSums& block_sums) {
  BlockSums sums = block_sums;
  for (int64_t d = 0; d < dwords; ++d, run += 4, weights += sums.size()) {
    const int16_t four[4] = {run[0], run[1], run[2], run[3]};
    int16_t codes[kChannelBlock * 4];
    for (int64_t i = 0; i < kChannelBlock; ++i) std::memcpy(codes + i * 4, four, sizeof(four));
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += static_cast<int16_t>(codes[i] * weights[i]);  // a product of codes fits 16 bits
  }
  block_sums = sums;
}

void conv(const ConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const ConvLayout l = conv_layout(g, a.in.c_pitch);
  const QTensor& out = a.epilogue.out;
  for (int64_t b = blocks.begin; b < blocks.end; ++b) {
    const int64_t channel = block_channel_offset(g, b);
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t x = 0; x < out.w; ++x) {
        const int64_t n = r / out.h, y = r % out.h;
        const uint8_t* in = first_byte(a, n, y, x) + channel;
        BlockSums sums = {};
        for (int64_t s = 0; s < l.segments; ++s)
          add_products(in + s / l.segments_per_row * g.dilation_h * a.in.row_stride +
                           s % l.segments_per_row * g.dilation_w * a.in.c_pitch,
                       a.weights + (b * l.segments + s) * l.dwords * 64, l.dwords, sums);
        for (int64_t oc = b * kChannelBlock; oc < std::min((b + 1) * kChannelBlock, g.out_channels); ++oc) {
          const int32_t* const four = sums.data() + oc % kChannelBlock * 4;
          // Wraps around, as vectors do, where a hostile file lets it leave 32 bits.
          const int64_t acc = int64_t{a.acc_init[oc]} + four[0] + four[1] + four[2] + four[3];
          finish(a.epilogue, static_cast<int32_t>(acc), oc, n, y, x);
        }
      }
  }
}

void depthwise(const ConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  const int64_t weight_pitch = padded_channels(g.out_channels);
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < out.w; ++x) {
      const uint8_t* in = first_byte(a, r / out.h, r % out.h, x);
      for (int64_t c = 0; c < g.out_channels; ++c) {
        int32_t acc = a.acc_init[c];
        for (int64_t ky = 0; ky < g.kernel_h; ++ky)
          for (int64_t kx = 0; kx < g.kernel_w; ++kx)
            acc += in[ky * g.dilation_h * a.in.row_stride + kx * g.dilation_w * a.in.c_pitch + c] *
                   a.weights[(ky * g.kernel_w + kx) * weight_pitch + c];
        finish(a.epilogue, acc, c, r / out.h, r % out.h, x);
      }
    }
}

}  // namespace

void add_scalar_int8_conv(KernelTable& table) {
  set_direct_conv(table, conv, Isa::kScalar,
                  [](const ConvArgs& a, int threads) { return cost_at_rate(a, threads, 2); });
  table.depthwise = {depthwise, Isa::kScalar};
}

}  // namespace octet::kernels

// Dense and depthwise convolution with the vectors of the compiler.
#include "engine/kernels/generic/finish.h"
#include "engine/kernels/generic/generic_kernels.h"

namespace octet::kernels {
namespace {

constexpr int kPixels = 4;

// The four input bytes of a dword, twice, as words.
OCTET_INLINE Words activations(const uint8_t* p) {
  typedef uint32_t Pair __attribute__((vector_size(8)));
  uint32_t dword;
  std::memcpy(&dword, p, 4);
  return __builtin_convertvector((HalfCodes)Pair{dword, dword}, Words);
}

// Sums of P pixels of a row, `step` bytes apart, for the 16 output channels of a block. A product of u8 and s8 fits a
// word, the sum of two does not: pairs are added in 32 bits. Half a block at a time, so that 4 pixels stay in
// registers.
template <int P>
void sum_pixels(const ConvArgs& a, const ConvLayout& l, const uint8_t* in, int64_t step, const int8_t* block,
                const int32_t* init, Ints (*sums)[4]) {
  const ConvGeometry& g = a.geometry;
  for (int half = 0; half < 2; ++half) {
    Ints acc[P][4] = {};  // two lanes for each channel: bytes 0 and 1, bytes 2 and 3 of the dwords
    const int8_t* weights = block + half * 32;
    for (int64_t s = 0; s < l.segments; ++s) {
      const uint8_t* run = in + s / l.segments_per_row * g.dilation_h * a.in.row_stride +
                           s % l.segments_per_row * g.dilation_w * a.in.c_pitch;
      for (int64_t d = 0; d < l.dwords; ++d, weights += 64) {
        const Words w[4] = {words(weights), words(weights + 8), words(weights + 16), words(weights + 24)};
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) {
          const Words x = activations(run + p * step + 4 * d);
#pragma GCC unroll 4
          for (int i = 0; i < 4; ++i) acc[p][i] = add_pairs(acc[p][i], w[i] * x);
        }
      }
    }
    for (int p = 0; p < P; ++p)
      for (int i = 0; i < 2; ++i) {
        const Ints first = acc[p][2 * i], second = acc[p][2 * i + 1];
        sums[p][2 * half + i] = load<Ints>(init + half * 8 + i * 4) +
                                __builtin_shufflevector(first, second, 0, 2, 4, 6) +
                                __builtin_shufflevector(first, second, 1, 3, 5, 7);
      }
  }
}

const uint8_t* first_byte(const ConvArgs& a, int64_t n, int64_t y) {
  return a.in.data + n * a.in.image_stride + (y * a.geometry.stride_h - a.geometry.pad_top) * a.in.row_stride -
         a.geometry.pad_left * a.in.c_pitch;
}

void conv(const ConvArgs& a, Range rows, Range blocks) {
  const ConvLayout l = conv_layout(a.geometry, a.in.c_pitch);
  const QTensor& out = a.epilogue.out;
  const Finish finish(a.epilogue);
  const int64_t step = a.geometry.stride_w * a.in.c_pitch;
  for (int64_t b = blocks.begin; b < blocks.end; ++b) {
    const int64_t oc = b * kChannelBlock, channel = block_channel_offset(a.geometry, b);
    const int8_t* weights = a.weights + b * l.segments * l.dwords * 64;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const int64_t n = r / out.h, y = r % out.h;
      const uint8_t* in = first_byte(a, n, y) + channel;
      for (int64_t x = 0; x < out.w; x += kPixels) {
        const int64_t pixels = out.w - x < kPixels ? out.w - x : kPixels;
        constexpr decltype(&sum_pixels<1>) kSums[] = {sum_pixels<1>, sum_pixels<2>, sum_pixels<3>, sum_pixels<4>};
        Ints sums[kPixels][4];
        kSums[pixels - 1](a, l, in + x * step, step, weights, a.acc_init + oc, sums);
        for (int64_t p = 0; p < pixels; ++p) finish(sums[p], oc, n, y, x + p);
      }
    }
  }
}

void depthwise(const ConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const QTensor& out = a.epilogue.out;
  const Finish finish(a.epilogue);
  const int64_t weight_pitch = padded_channels(g.out_channels);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint8_t* row = first_byte(a, r / out.h, r % out.h);
    for (int64_t x = 0; x < out.w; ++x)
      for (int64_t c = 0; c < g.out_channels; c += kChannelBlock) {
        Ints acc[4];
        for (int i = 0; i < 4; ++i) acc[i] = load<Ints>(a.acc_init + c + 4 * i);
        const int8_t* w = a.weights + c;
        for (int64_t ky = 0; ky < g.kernel_h; ++ky) {
          const uint8_t* in = row + ky * g.dilation_h * a.in.row_stride + x * g.stride_w * a.in.c_pitch + c;
          for (int64_t kx = 0; kx < g.kernel_w; ++kx, in += g.dilation_w * a.in.c_pitch, w += weight_pitch) {
            const Words first = words(in) * words(w), second = words(in + 8) * words(w + 8);
            acc[0] += low(first);
            acc[1] += high(first);
            acc[2] += low(second);
            acc[3] += high(second);
          }
        }
        finish(acc, c, r / out.h, r % out.h, x);
      }
  }
}

}  // namespace

void add_generic_int8_conv(KernelTable& table) {
  set_direct_conv(table, conv, Isa::kGeneric,
                  [](const ConvArgs& a, int threads) { return cost_at_rate(a, threads, 5); });
  table.depthwise = {depthwise, Isa::kGeneric};
}

}  // namespace octet::kernels

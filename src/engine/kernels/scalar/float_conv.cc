#include "engine/kernels/float_conv.h"

#include <algorithm>

#include "base/error.h"
#include "engine/kernels/float_limits.h"
#include "engine/kernels/scalar/scalar_kernels.h"

namespace octet::kernels {
namespace {

int64_t blocks_per_group(const ConvGeometry& g) {
  return padded_channels(g.out_channels / g.groups) / kChannelBlock;
}

}  // namespace

int64_t float_conv_blocks(const ConvGeometry& g) {
  return g.groups * blocks_per_group(g);
}

int64_t float_conv_weight_floats(const ConvGeometry& g) {
  return float_conv_blocks(g) * g.kernel_h * g.kernel_w * (g.in_channels / g.groups) * kChannelBlock;
}

void pack_float_conv_weights(const ConvGeometry& g, std::span<const float> weights, std::span<float> packed) {
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups, taps = g.kernel_h * g.kernel_w;
  OCTET_CHECK(static_cast<int64_t>(weights.size()) == g.out_channels * in * taps);
  OCTET_CHECK(static_cast<int64_t>(packed.size()) == float_conv_weight_floats(g));
  std::fill(packed.begin(), packed.end(), 0.0f);
  for (int64_t oc = 0; oc < g.out_channels; ++oc) {
    const int64_t block = oc / out * blocks_per_group(g) + oc % out / kChannelBlock;
    for (int64_t ic = 0; ic < in; ++ic)
      for (int64_t t = 0; t < taps; ++t)
        packed[((block * taps + t) * in + ic) * kChannelBlock + oc % out % kChannelBlock] =
            weights[(oc * in + ic) * taps + t];
  }
}

void pack_float_depthwise_weights(const ConvGeometry& g, std::span<const float> weights, std::span<float> packed) {
  const int64_t taps = g.kernel_h * g.kernel_w;
  OCTET_CHECK(g.groups == g.in_channels && g.groups == g.out_channels);
  OCTET_CHECK(static_cast<int64_t>(weights.size()) == taps * g.out_channels && packed.size() == weights.size());
  for (int64_t c = 0; c < g.out_channels; ++c)
    for (int64_t t = 0; t < taps; ++t) packed[t * g.out_channels + c] = weights[c * taps + t];
}

namespace {

void store(const FloatEpilogue& e, float sum, int64_t channel, int64_t at, float* out) {
  if (e.bias) sum += e.bias[channel];
  if (e.residual) sum += e.residual[at];
  out[at] = limited(sum, e.lo, e.hi);
}

void conv(const FloatConvArgs& a, Range rows, Range blocks) {
  const ConvGeometry& g = a.geometry;
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups, per_group = blocks_per_group(g);
  for (int64_t b = blocks.begin; b < blocks.end; ++b) {
    const int64_t group = b / per_group, first = b % per_group * kChannelBlock;
    const int64_t lanes = std::min(kChannelBlock, out - first);
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t x = 0; x < a.out_w; ++x) {
        float sum[kChannelBlock] = {};
        for (int64_t ky = 0; ky < g.kernel_h; ++ky)
          for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
            const int64_t iy = r % a.out_h * g.stride_h - g.pad_top + ky * g.dilation_h;
            const int64_t ix = x * g.stride_w - g.pad_left + kx * g.dilation_w;
            if (iy < 0 || iy >= a.in_h || ix < 0 || ix >= a.in_w) continue;
            const float* p = a.in + ((r / a.out_h * a.in_h + iy) * a.in_w + ix) * g.in_channels + group * in;
            const float* w = a.weights + ((b * g.kernel_h + ky) * g.kernel_w + kx) * in * kChannelBlock;
            for (int64_t ic = 0; ic < in; ++ic)
              for (int64_t k = 0; k < kChannelBlock; ++k) sum[k] += p[ic] * w[ic * kChannelBlock + k];
          }
        const int64_t channel = group * out + first;
        for (int64_t k = 0; k < lanes; ++k)
          store(a.epilogue, sum[k], channel + k, (r * a.out_w + x) * g.out_channels + channel + k, a.out);
      }
  }
}

void depthwise(const FloatConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const int64_t channels = g.out_channels;
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < a.out_w; ++x) {
      float* out = a.out + (r * a.out_w + x) * channels;
      std::fill(out, out + channels, 0.0f);
      for (int64_t ky = 0; ky < g.kernel_h; ++ky)
        for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
          const int64_t iy = r % a.out_h * g.stride_h - g.pad_top + ky * g.dilation_h;
          const int64_t ix = x * g.stride_w - g.pad_left + kx * g.dilation_w;
          if (iy < 0 || iy >= a.in_h || ix < 0 || ix >= a.in_w) continue;
          const float* p = a.in + ((r / a.out_h * a.in_h + iy) * a.in_w + ix) * channels;
          const float* w = a.weights + (ky * g.kernel_w + kx) * channels;
          for (int64_t c = 0; c < channels; ++c) out[c] += p[c] * w[c];
        }
      for (int64_t c = 0; c < channels; ++c) store(a.epilogue, out[c], c, (r * a.out_w + x) * channels + c, a.out);
    }
}

void conv_transpose(const FloatConvArgs& a, Range rows) {
  const ConvGeometry& g = a.geometry;
  const int64_t in = g.in_channels / g.groups, out = g.out_channels / g.groups, taps = g.kernel_h * g.kernel_w;
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t x = 0; x < a.out_w; ++x)
      for (int64_t oc = 0; oc < g.out_channels; ++oc) {
        float sum = 0;
        for (int64_t ky = 0; ky < g.kernel_h; ++ky)
          for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
            const int64_t ty = r % a.out_h + g.pad_top - ky * g.dilation_h, tx = x + g.pad_left - kx * g.dilation_w;
            if (ty < 0 || tx < 0 || ty % g.stride_h || tx % g.stride_w) continue;
            const int64_t iy = ty / g.stride_h, ix = tx / g.stride_w;
            if (iy >= a.in_h || ix >= a.in_w) continue;
            const float* p = a.in + ((r / a.out_h * a.in_h + iy) * a.in_w + ix) * g.in_channels + oc / out * in;
            const float* w = a.weights + (oc / out * in * out + oc % out) * taps + ky * g.kernel_w + kx;
            for (int64_t ic = 0; ic < in; ++ic) sum += p[ic] * w[ic * out * taps];
          }
        store(a.epilogue, sum, oc, (r * a.out_w + x) * g.out_channels + oc, a.out);
      }
}

void gemm(const FloatGemmArgs& a, Range rows, Range blocks) {
  for (int64_t b = blocks.begin; b < blocks.end; ++b)
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      float sum[kChannelBlock] = {};
      const float* w = a.weights + b * a.k * kChannelBlock;
      for (int64_t k = 0; k < a.k; ++k)
        for (int64_t j = 0; j < kChannelBlock; ++j) sum[j] += a.a[r * a.k + k] * w[k * kChannelBlock + j];
      const int64_t first = b * kChannelBlock;
      for (int64_t j = 0; j < std::min(kChannelBlock, a.n - first); ++j)
        store(a.epilogue, sum[j], first + j, r * a.n + first + j, a.c);
    }
}

void matmul(const FloatMatMulArgs& a, Range rows) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t batch = r / a.m;
    const float* left = a.a + batch * a.a_batch_stride + r % a.m * a.k;
    const float* right = a.b + batch * a.b_batch_stride;
    float* out = a.c + r * a.n;
    std::fill(out, out + a.n, 0.0f);
    for (int64_t k = 0; k < a.k; ++k)
      for (int64_t j = 0; j < a.n; ++j) out[j] += left[k] * right[k * a.n + j];
  }
}

}  // namespace

void add_scalar_float_conv(KernelTable& table) {
  table.float_conv = {conv};
  table.float_depthwise = {depthwise};
  table.float_conv_transpose = {conv_transpose};
  table.float_gemm = {gemm};
  table.float_matmul = {matmul};
}

}  // namespace octet::kernels

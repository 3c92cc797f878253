// Float convolution, depthwise convolution, fully connected layers and matrix products: the parts of a graph that stay
// in FP32. Every instruction set adds the products in the same order; from AVX2 on they are fused into the sums, before
// they are rounded on their own, so the last bits differ between these two groups and not within them. NaN stays NaN.
// Tensors are dense: NHWC for images, row-major otherwise. Positions outside the image count as zero; no halo.
#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "engine/kernels/int8_conv.h"
#include "engine/kernels/tensor.h"

namespace octet::kernels {

// y = clamp(sum + bias[oc] (+ residual), lo, hi).
struct FloatEpilogue {
  const float* bias = nullptr;      // [out channels], or none
  const float* residual = nullptr;  // same shape as the output, or none
  float lo = -std::numeric_limits<float>::infinity(), hi = std::numeric_limits<float>::infinity();
};

// Packed weights: [group][block of 16 output channels of the group][kernel_h][kernel_w][in channel of the group][16].
int64_t float_conv_weight_floats(const ConvGeometry& geometry);
void pack_float_conv_weights(const ConvGeometry& geometry, std::span<const float> weights, std::span<float> packed);
// Number of blocks: groups * ceil(out_channels / groups / 16).
int64_t float_conv_blocks(const ConvGeometry& geometry);

struct FloatConvArgs {
  ConvGeometry geometry;
  const float* in = nullptr;  // n x in_h x in_w x in_channels
  float* out = nullptr;       // n x out_h x out_w x out_channels
  int64_t n = 1, in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  const float* weights = nullptr;
  FloatEpilogue epilogue;
};
// Output rows over n * out_h, and blocks (float_conv_blocks).
using FloatConvFunction = void(const FloatConvArgs& args, Range rows, Range blocks);

// Depthwise (groups == in_channels == out_channels): weights [kernel_h][kernel_w][c].
void pack_float_depthwise_weights(const ConvGeometry& geometry, std::span<const float> weights,
                                  std::span<float> packed);
using FloatDepthwiseFunction = void(const FloatConvArgs& args, Range rows);

// Transposed convolution (no groups' restriction): weights in ONNX order in_channels x out_channels/groups x kh x kw,
// unpacked. `geometry` is the ONNX node's: stride and dilation of the output, pads removed from it.
using FloatConvTransposeFunction = void(const FloatConvArgs& args, Range rows);

// c[m][n] = a[m][k] * B + bias. B is packed by pack_float_conv_weights of a 1x1 geometry {k, n} (weights n x k).
struct FloatGemmArgs {
  const float* a = nullptr;
  const float* weights = nullptr;
  float* c = nullptr;
  int64_t m = 0, n = 0, k = 0;
  FloatEpilogue epilogue;
};
// Rows of c, and blocks of 16 columns.
using FloatGemmFunction = void(const FloatGemmArgs& args, Range rows, Range blocks);

// c[batch] = a[batch] * b[batch], all row-major and unpacked: m x k times k x n. A batch stride of 0 broadcasts.
struct FloatMatMulArgs {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  int64_t batches = 1, m = 0, n = 0, k = 0;
  int64_t a_batch_stride = 0, b_batch_stride = 0;  // floats
};
// Rows counted over batches * m.
using FloatMatMulFunction = void(const FloatMatMulArgs& args, Range rows);

}  // namespace octet::kernels

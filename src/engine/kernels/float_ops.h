// Float kernels without weights. Tensors are dense; images NHWC, the rest row-major. Limits and largest elements keep
// NaN (float_limits.h); the index of the largest passes it by, unless it comes first, as in ONNX Runtime.
#pragma once
#include <array>
#include <cstdint>

#include "engine/kernels/int8_ops.h"
#include "engine/kernels/tensor.h"

namespace octet::kernels {

enum class FloatPoolKind { kMax, kAverage };
// Positions outside the image do not take part; count_include_pad divides by the pads as well. GlobalAveragePool and
// GlobalMaxPool: the kernel is the image (or reduce()).
struct FloatPoolArgs {
  FloatPoolKind kind = FloatPoolKind::kMax;
  const float* in = nullptr;
  float* out = nullptr;
  int64_t n = 1, in_h = 1, in_w = 1, c = 1, out_h = 1, out_w = 1;
  PoolWindow window;
  bool count_include_pad = false;
};
using FloatPoolFunction = void(const FloatPoolArgs& args, Range rows);

enum class UnaryOp {
  kIdentity,
  kRelu,
  kClip,       // [alpha, beta]
  kLeakyRelu,  // alpha
  kElu,        // alpha
  kSigmoid,
  kSilu,         // x * sigmoid(x)
  kHardSigmoid,  // clamp(alpha * x + beta, 0, 1)
  kHardSwish,    // x * clamp(x / 6 + 0.5, 0, 1)
  kTanh,
  kSoftplus,
  kExp,
  kLog,
  kSqrt,
  kNeg,
  kAbs,
  kErf,
  kGelu,  // 0.5 x (1 + erf(x / sqrt 2))
  kFloor,
  kReciprocal
};
// One element, with the C library; the definition that tables of 8-bit functions are filled with. Kernels have the same
// bits among each other, but their own exponentials (float_functions.h).
float apply_unary(UnaryOp op, float x, float alpha, float beta);

struct UnaryArgs {
  UnaryOp op = UnaryOp::kIdentity;
  const float* in = nullptr;
  float* out = nullptr;  // may be `in`
  float alpha = 0, beta = 0;
};
using UnaryFunction = void(const UnaryArgs& args, Range elements);

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kMin, kMax, kPow, kPRelu /* a < 0 ? a * b : a */ };

inline constexpr int kMaxRank = 8;
using Dims = std::array<int64_t, kMaxRank>;

// out[i] = a[i . a_strides] op b[i . b_strides] over a dense output of `rank` dimensions; stride 0 broadcasts.
struct BinaryArgs {
  BinaryOp op = BinaryOp::kAdd;
  const float* a = nullptr;
  const float* b = nullptr;
  float* out = nullptr;
  int rank = 1;
  Dims dims{}, a_strides{}, b_strides{};  // outermost first; strides in floats
};
// Work: elements of the output.
using BinaryFunction = void(const BinaryArgs& args, Range elements);

// Strided copy of elements of 1, 4 or 8 bytes: transpose, slice, pad, concat, expand, depth-to-space, NCHW <-> NHWC.
// out[i . out_strides] = in[i . in_strides]; strides in elements, may be 0 or negative.
struct StridedCopyArgs {
  const void* in = nullptr;
  void* out = nullptr;
  int element_bytes = 4;
  int rank = 1;
  Dims dims{}, in_strides{}, out_strides{};  // outermost first
};
// Work: rows, that is the product of all dimensions but the innermost.
using StridedCopyFunction = void(const StridedCopyArgs& args, Range rows);

// Tensors seen as [outer][axis][inner].
struct AxisArgs {
  const float* in = nullptr;
  float* out = nullptr;
  int64_t outer = 1, axis = 1, inner = 1;
};
struct SoftmaxArgs {
  AxisArgs shape;
  bool logarithm = false;
};
using SoftmaxFunction = void(const SoftmaxArgs& args, Range outer);

// out = (in - mean) / sqrt(variance + epsilon) * scale + shift over lines of `length` neighboring elements (ONNX
// LayerNormalization); `out` may be `in`. Work: lines.
struct LayerNormArgs {
  const float* in = nullptr;
  float* out = nullptr;
  const float *scale = nullptr, *shift = nullptr;  // [length]
  int64_t length = 1;
  float epsilon = 1e-5f;
  float *means = nullptr, *inverses = nullptr;  // [lines], or both nullptr: of each line, and 1 / its deviation
};
using LayerNormFunction = void(const LayerNormArgs& args, Range lines);

enum class ReduceOp { kMean, kSum, kMax };
struct ReduceArgs {
  AxisArgs shape;  // out: [outer][inner]
  ReduceOp op = ReduceOp::kMean;
};
using ReduceFunction = void(const ReduceArgs& args, Range outer);

// Index of the largest element (the first of equals; the last with select_last).
struct ArgMaxArgs {
  const float* in = nullptr;
  int64_t* out = nullptr;  // [outer][inner]
  int64_t outer = 1, axis = 1, inner = 1;
  bool select_last = false;
};
using ArgMaxFunction = void(const ArgMaxArgs& args, Range outer);

// out[p][c] = in[p][c] * scale[c] + shift[c]. Work: pixels p.
struct ScaleShiftArgs {
  const float* in = nullptr;
  float* out = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  int64_t c = 1;
};
using ScaleShiftFunction = void(const ScaleShiftArgs& args, Range pixels);

// Separable resize of an NHWC image: out(y, x) mixes rows y_low[y], y_high[y] and columns alike with the weight of
// *_high. Nearest: low == high and weight 0.
struct FloatResizeArgs {
  const float* in = nullptr;
  float* out = nullptr;
  int64_t n = 1, in_h = 1, in_w = 1, out_h = 1, out_w = 1, c = 1;
  const int32_t *y_low = nullptr, *y_high = nullptr, *x_low = nullptr, *x_high = nullptr;
  const float *y_weight = nullptr, *x_weight = nullptr;
};
using FloatResizeFunction = void(const FloatResizeArgs& args, Range rows);

// Local response normalization over channels (ONNX LRN), NHWC. Work: pixels.
struct LrnArgs {
  const float* in = nullptr;
  float* out = nullptr;
  int64_t c = 1, size = 1;
  float alpha = 1e-4f, beta = 0.75f, bias = 1;
};
using LrnFunction = void(const LrnArgs& args, Range pixels);

}  // namespace octet::kernels

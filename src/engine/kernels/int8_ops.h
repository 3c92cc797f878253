// INT8 kernels without weights. All tensors are u8 NHWC (tensor.h). Work is counted in output rows over n * h unless
// said otherwise. No kernel needs a halo.
#pragma once
#include <cstdint>

#include "engine/kernels/tensor.h"
#include "numerics/quantize.h"

namespace octet::kernels {

struct PoolWindow {
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

// Positions outside the image do not take part. `in` and `out` have the same scale and zero point.
struct MaxPoolArgs {
  QTensor in, out;
  PoolWindow window;  // GlobalMaxPool: the kernel is the image
};
using MaxPoolFunction = void(const MaxPoolArgs& args, Range rows);

// q = requantize(sum of (q_x - z_x), average_multiplier(scale_in, count, scale_out)). count: positions inside the
// image, or with count_include_pad inside the image and its pads.
struct AveragePoolArgs {
  QTensor in, out;
  PoolWindow window;
  bool count_include_pad = false;
  float scale_in = 1, scale_out = 1;
  int32_t lo = 0, hi = 255;
};
using AveragePoolFunction = void(const AveragePoolArgs& args, Range rows);

// Mean over h and w. u8 output like AveragePool; float output float(sum) * average_multiplier(scale_in, h * w, 1),
// dense [n][c]. Work: blocks of 16 channels, counted over n * ceil(c / 16).
struct GlobalAverageArgs {
  QTensor in, out;  // out: n x 1 x 1 x c; data == nullptr: float output
  float* float_out = nullptr;
  float scale_in = 1, scale_out = 1;
  int32_t lo = 0, hi = 255;
};
using GlobalAverageFunction = void(const GlobalAverageArgs& args, Range blocks);

// The same mean in two halves, so that the threads that make a tensor can add up their own rows.
// sums: [n * h][padded_channels(c)]. The sum of the stored codes over those of `rows` that belong to one image goes to
// the first of them, the others get zeros: the sum over all h rows is exact whatever the split (h * w * 255 < 2^31).
struct RowSumsArgs {
  QTensor in;
  int32_t* sums = nullptr;
};
using RowSumsFunction = void(const RowSumsArgs& args, Range rows);
// out[c] = requantize(sum over the rows of one image - pixels * in_zero_point, multiplier), multiplier =
// average_multiplier(scale_in, pixels, scale_out). `channels` is a multiple of 16; all of them are written.
struct MeanOfSumsArgs {
  const int32_t* sums = nullptr;  // [rows][channels]
  int64_t rows = 0, channels = 0, pixels = 0;
  int32_t in_zero_point = 0;
  float multiplier = 1;
  int32_t zero_point = 0, lo = 0, hi = 255;
  uint8_t* out = nullptr;
};
using MeanOfSumsFunction = void(const MeanOfSumsArgs& args);

// q = clamp(rne(float(q_a - z_a) * a_multiplier + float(q_b - z_b) * b_multiplier) + z, lo, hi), then the table.
// a_multiplier = fl(scale_a / scale_out); Sub: negate b_multiplier. `b` of 1 x 1 pixels is broadcast over the image,
// and `b` of n == 1 over the batch.
struct AddArgs {
  QTensor a, b, out;
  float a_multiplier = 1, b_multiplier = 1;
  int32_t lo = 0, hi = 255;
  const uint8_t* table = nullptr;
};
using AddFunction = void(const AddArgs& args, Range rows);

// q = clamp(rne(float((q_a - z_a) * (q_b - z_b)) * multiplier) + z, lo, hi), multiplier = fl(fl(scale_a * scale_b) /
// scale_out). `b` is broadcast as in AddArgs: squeeze-and-excite is a multiplication by an n x 1 x 1 x c tensor.
struct MulArgs {
  QTensor a, b, out;
  float multiplier = 1;
  int32_t lo = 0, hi = 255;
};
using MulFunction = void(const MulArgs& args, Range rows);

// out = table[in], or a copy without a table. Writes exactly c channels, so that `out` may be a channel range of a
// concatenation at any offset, and both may be windows (Slice, Split, Pad, Concat of any axis).
struct CopyArgs {
  QTensor in, out;                 // same n, h, w, c
  const uint8_t* table = nullptr;  // 256 entries
};
using CopyFunction = void(const CopyArgs& args, Range rows);

// out[c] = clamp(rne(float(in[c]) * multiplier[c] + offset[c]), lo, hi) of the stored codes, zero points included: a
// product, a sum, both rounded. Writes exactly c channels.
struct ScaleShiftCodesArgs {
  QTensor in, out;                                       // same n, h, w, c
  const float *multiplier = nullptr, *offset = nullptr;  // [c]; |multiplier| * 255 + |offset| < kMostOfALine
  int32_t lo = 0, hi = 255;
};
inline constexpr float kMostOfALine = 4194304;  // 2^22: rounded sums are exact in int32
using ScaleShiftCodesFunction = void(const ScaleShiftCodesArgs& args, Range rows);

// out(y, x) = in(y_index[y], x_index[x]); whoever compiles the graph fills the indices by its coordinate rule.
struct ResizeNearestArgs {
  QTensor in, out;
  const int32_t* y_index = nullptr;  // [out.h]
  const int32_t* x_index = nullptr;  // [out.w]
};
using ResizeNearestFunction = void(const ResizeNearestArgs& args, Range rows);

// ShuffleNet's order of channels (Zhang et al. 2018): channel i of group g becomes channel i * groups + g.
struct ChannelShuffleArgs {
  QTensor in, out;     // same n, h, w, c
  int64_t groups = 2;  // divides c
};
using ChannelShuffleFunction = void(const ChannelShuffleArgs& args, Range rows);

// Strides in floats of a float image at the border of the INT8 part: NHWC and NCHW are both of this form.
struct FloatStrides {
  int64_t n = 0, h = 0, w = 0, c = 0;
};
FloatStrides nchw_strides(int64_t h, int64_t w, int64_t c);
FloatStrides nhwc_strides(int64_t h, int64_t w, int64_t c);

// numerics::quantize of every element (a true division; NaN gives the zero point). Pad channels of a pitch of 4 get the
// zero point. `params` are those of the stored u8 codes (zero point, qmin and qmax moved by 128 for signed tensors).
struct QuantizeArgs {
  const float* in = nullptr;
  FloatStrides in_strides;
  QTensor out;
  numerics::QuantParams params{.scale = 1, .zero_point = 0, .qmin = 0, .qmax = 255};
};
using QuantizeFunction = void(const QuantizeArgs& args, Range rows);

// float(q - zero_point) * scale.
struct DequantizeArgs {
  QTensor in;
  float* out = nullptr;
  FloatStrides out_strides;
  float scale = 1;
};
using DequantizeFunction = void(const DequantizeArgs& args, Range rows);

}  // namespace octet::kernels

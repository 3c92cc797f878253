// INT8 convolution, depthwise convolution and fully connected layers (a 1x1 convolution over a 1x1 image).
//
// "Row runs": for one output pixel and one kernel row the input bytes form one contiguous run of kernel_w * c_pitch
// bytes, because the tensor is NHWC and its border is in the buffer. A run is one *segment*; with a dilation along the
// width, with groups or over a part of the channels of a wider tensor every tap is a segment of its own. All segments
// of a convolution have the same number of dwords.
//
// Packed weights, one layout for every instruction set:
//   [block of 16 output channels][segment][dword][16 output channels][4 bytes]
// which is at once what a dot-product instruction loads and a sequence of AMX tile rows. Bytes that meet channel
// padding, and channels beyond out_channels, are zero.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "engine/kernels/code_function.h"
#include "engine/kernels/tensor.h"

namespace octet::kernels {

// out_h and out_w follow from the output tensor; bottom and right pads only have to be in the input's halo.
struct ConvGeometry {
  int64_t in_channels = 0, out_channels = 0, groups = 1;  // groups divides both
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
};

// Bytes of a pixel that have weights; further ones belong to other tensors.
int64_t pixel_bytes(const ConvGeometry& geometry);

// How the weights of a convolution over an input of this channel pitch are cut. The packed bytes do not depend on it.
struct ConvLayout {
  int64_t blocks = 0;            // of 16 output channels
  int64_t segments_per_row = 1;  // 1, or kernel_w where taps are apart
  int64_t segments = 1;          // kernel_h * segments_per_row
  int64_t dwords = 0;            // per segment
  int64_t weight_bytes = 0;      // of the packed weights: blocks * segments * dwords * 64
};
ConvLayout conv_layout(const ConvGeometry& geometry, int64_t c_pitch);
// First input channel that a block of output channels reads: 0 without groups; a multiple of 4.
int64_t block_channel_offset(const ConvGeometry& geometry, int64_t block);

// `weights`: out_channels x in_channels/groups x kernel_h x kernel_w (ONNX order, zero point 0). `packed` has
// conv_layout(...).weight_bytes bytes.
void pack_conv_weights(const ConvGeometry& geometry, int64_t c_pitch, std::span<const int8_t> weights,
                       std::span<int8_t> packed);
// acc_init[oc] = bias[oc] - zero_point * sum of the weights of oc; `bias` may be empty. `acc_init` has
// padded_channels(out_channels) entries, the padding becomes 0. Also for depthwise weights (C x 1 x KH x KW).
// UserError if a value leaves int32.
void make_acc_init(std::span<const int8_t> weights, int64_t out_channels, std::span<const int32_t> bias,
                   int32_t zero_point, std::span<int32_t> acc_init);

// What is known of all output channels: kernels choose shortcuts by it (epilogue_shortcuts.h). The default is to know
// nothing.
struct ChannelLimits {
  float least_multiplier = -std::numeric_limits<float>::infinity();
  float greatest_multiplier = std::numeric_limits<float>::infinity();
  int64_t greatest_start = std::numeric_limits<int32_t>::max();  // the greatest magnitude in acc_init
  int64_t greatest_sum = int64_t{1} << 31;                       // ... of an accumulator
  bool short_multipliers = false;  // all have 22 significant bits at most, so that three times one is a float, too
};
// Of the real channels, without the padding. `products`: of a code and a weight, in one accumulator.
ChannelLimits channel_limits(std::span<const float> multiplier, std::span<const int32_t> acc_init, int64_t products);
int64_t products_of_a_sum(const ConvGeometry& geometry);

// The residual's product as a sum of two numbers: high[r / 16] + low[r % 16] for a code r.
struct ResidualTables {
  float high[16], low[16];
};

// What happens to an accumulator. u8 output, in this order:
//   v = float(acc) * multiplier[oc]
//   rounds_twice:  v = float(clamp(rne(v) + mid_zero_point, mid_lo, mid_hi) - mid_zero_point) * mid_multiplier
//   residual:      v = v + float(q_r - residual.zero_point) * residual_multiplier
//   q = clamp(rne(v) + out.zero_point, lo, hi);  table: q = table[q];  function: q = function of that step
// float output: y = float(acc) * multiplier[oc]; float_residual: y = y + float_residual[i]; y = clamp(y, float_lo,
// float_hi). Every operation rounds on its own (no FMA): all instruction sets give the same bytes, also for float
// output. A u8 output is written in whole blocks of 16 channels where out.c_pitch >= 16, else in 4 bytes.
struct Epilogue {
  const float* multiplier = nullptr;  // [padded_channels(out_channels)], finite; padding readable
  ChannelLimits limits;
  QTensor out;                     // data == nullptr: float output
  int32_t lo = 0, hi = 255;        // 0 <= lo <= hi <= 255; ReLU is lo = out.zero_point
  const uint8_t* table = nullptr;  // 256 entries, or none
  CodeFunction function;           // or none; then lo and hi are the limits of steps, the zero point 0, and no table
  QTensor residual;                // data == nullptr: none; same n, h, w, c as out
  float residual_multiplier = 0;
  bool rounds_twice = false;  // only with a residual: the graph quantizes the convolution's own output before the Add
  int32_t mid_zero_point = 0, mid_lo = 0, mid_hi = 255;
  float mid_multiplier = 1;
  // Set only where residual_sum_fuses() of the kernel table said so: with both roundings, fma(q_mid, mid_multiplier,
  // the residual's product) gives the same codes as a product and a sum, so kernels may use it.
  bool sum_fuses = false;
  // Set only where make_residual_tables() of the kernel table said so: with both roundings, fma(q_mid, mid_multiplier,
  // the sum from these tables) gives the same codes, too.
  const ResidualTables* residual_tables = nullptr;
  float* float_out = nullptr;  // dense NHWC, used when out.data == nullptr; shape in `out`
  const float* float_residual = nullptr;
  float float_lo = -std::numeric_limits<float>::infinity(), float_hi = std::numeric_limits<float>::infinity();
};

// What the threads share out: output rows, or blocks of output channels.
enum class ConvSplit { kAuto, kRows, kChannels };

// What this thread reads first in the convolution after this one. Worth fetching: the weights of a large network come
// from main memory, and until the first of them are there a thread waits.
struct ReadSoon {
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};

// `epilogue.out` gives n, h, w, c of the output also when the output is float. The halo of `in` covers all pads.
struct ConvArgs {
  ConvGeometry geometry;
  QTensor in;
  const int8_t* weights = nullptr;    // packed, 64-byte aligned
  const int32_t* acc_init = nullptr;  // [padded_channels(out_channels)]
  Epilogue epilogue;
  ConvSplit split = ConvSplit::kAuto;
  const std::byte* prepared = nullptr;  // the weights as the tactic made them (conv_tactic.h), or none
  std::byte* scratch = nullptr;         // working memory of this thread, where the tactic asked for it
  std::byte* kept = nullptr;            // the same, with the content that the last run of this convolution left
  ReadSoon soon;                        // or nothing
  Range tiles;                          // see ConvShare; empty: all
};
// Output rows counted over n * out_h, and blocks of 16 output channels.
using ConvFunction = void(const ConvArgs& args, Range rows, Range blocks);

// The same for one pixel of input and output, a 1x1 kernel, no groups, u8 output, no residual: the small layers inside
// a step. All blocks of channels.
using PixelConvFunction = void(const ConvArgs& args);

// How to share a convolution between threads: as args.split says; kAuto: by rows, or by blocks of output channels where
// the weights outweigh the activations (so that every core reads each weight once). The share of thread `part` of
// `parts`.
struct ConvShare {
  Range rows, blocks;
  // Of a tactic that cuts rows into tiles and shares these: the part's, counted over the tiles of `rows`; goes to
  // ConvArgs::tiles.
  Range tiles;
};
ConvShare conv_share(const ConvArgs& args, int part, int parts);

// Depthwise: in_channels == out_channels == groups. Packed weights are [kernel_h][kernel_w][padded_channels(c)], s8.
// No output channel multiplier (use ConvArgs with groups for that).
int64_t depthwise_weight_bytes(const ConvGeometry& geometry);
void pack_depthwise_weights(const ConvGeometry& geometry, std::span<const int8_t> weights, std::span<int8_t> packed);
// Runs over output rows counted over n * out_h; takes ConvArgs with `weights` packed as above. The input must have a
// channel pitch >= 16 or the output one of 4 as well (both follow from channel_pitch()).
using DepthwiseFunction = void(const ConvArgs& args, Range rows);

}  // namespace octet::kernels

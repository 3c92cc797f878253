// One row of kernels per instruction set. A kernel that an instruction set lacks is that of the next weaker one; every
// entry knows for which set it was written, for reports.
//
//   const KernelTable& k = kernels(default_isa());
//   k.conv(args, rows, blocks);  isa_name(k.conv.isa)
#pragma once
#include <vector>

#include "base/cpu_features.h"
#include "engine/kernels/conv_tactic.h"
#include "engine/kernels/float_conv.h"
#include "engine/kernels/float_ops.h"
#include "engine/kernels/int8_conv.h"
#include "engine/kernels/int8_matmul.h"
#include "engine/kernels/int8_ops.h"

namespace octet::kernels {

template <typename Function>
struct Entry {
  Function* function = nullptr;
  Isa isa = Isa::kScalar;  // the set the function was written for
  template <typename... Args>
  void operator()(const Args&... args) const {
    function(args...);
  }
};

struct KernelTable {
  Isa isa = Isa::kScalar;
  // INT8
  Entry<ConvFunction> conv;              // takes every convolution, without preparation
  std::vector<ConvTactic> conv_tactics;  // the ways to compute one; the last is `conv`, called "direct"
  // Whether an epilogue that rounds twice gives the same code with a fused multiply-add for every pair of codes
  // (Epilogue::sum_fuses). Needs only numbers and zero points, no data. nullptr: the instruction set has no use for it.
  bool (*residual_sum_fuses)(const Epilogue& epilogue) = nullptr;
  // The same for Epilogue::residual_tables, which it makes. Also false where this CPU multiplies as fast.
  bool (*make_residual_tables)(const Epilogue& epilogue, ResidualTables* tables) = nullptr;
  Entry<PixelConvFunction> pixel_conv;
  Entry<DepthwiseFunction> depthwise;
  Entry<MaxPoolFunction> max_pool;
  Entry<AveragePoolFunction> average_pool;
  Entry<GlobalAverageFunction> global_average;
  Entry<RowSumsFunction> row_sums;
  Entry<MeanOfSumsFunction> mean_of_sums;
  Entry<AddFunction> add;
  Entry<MulFunction> mul;
  Entry<CopyFunction> copy;  // also tables and requantization through a table
  Entry<ScaleShiftCodesFunction> scale_shift_codes;
  Entry<ResizeNearestFunction> resize_nearest;
  Entry<ChannelShuffleFunction> channel_shuffle;
  Entry<Int8MatMulFunction> int8_matmul;
  Entry<QuantizeFunction> quantize;
  Entry<DequantizeFunction> dequantize;
  // Float
  Entry<FloatConvFunction> float_conv;
  Entry<FloatDepthwiseFunction> float_depthwise;
  Entry<FloatConvTransposeFunction> float_conv_transpose;
  Entry<FloatGemmFunction> float_gemm;
  Entry<FloatMatMulFunction> float_matmul;
  Entry<FloatPoolFunction> float_pool;
  Entry<UnaryFunction> unary;
  Entry<BinaryFunction> binary;
  Entry<StridedCopyFunction> strided_copy;
  Entry<SoftmaxFunction> softmax;
  Entry<LayerNormFunction> layer_norm;
  Entry<ReduceFunction> reduce;
  Entry<ArgMaxFunction> arg_max;
  Entry<ScaleShiftFunction> scale_shift;
  Entry<FloatResizeFunction> float_resize;
  Entry<LrnFunction> lrn;
};

// Makes `function` the table's convolution for everything; `cost` as in ConvTactic.
void set_direct_conv(KernelTable& table, ConvFunction* function, Isa isa, double (*cost)(const ConvArgs&, int));

// The table of an instruction set. Before running it, isa_supported(isa) must have said yes: it also asks the operating
// system for the AMX tiles.
const KernelTable& kernels(Isa isa);

}  // namespace octet::kernels

// The AVX2 kernels (see the Function types of the public headers). All need FMA as well.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

ConvFunction conv_avx2;
ConvTactic words_avx2();
bool residual_sum_fuses_avx2(const Epilogue& epilogue);
bool make_residual_tables_avx2(const Epilogue& epilogue, ResidualTables* tables);
ConvTactic bytes_avx2();
DepthwiseFunction depthwise_avx2;
MaxPoolFunction max_pool_avx2;
GlobalAverageFunction global_average_avx2;
AveragePoolFunction average_pool_avx2;
PixelConvFunction pixel_conv_avx2;
RowSumsFunction row_sums_avx2;
MeanOfSumsFunction mean_of_sums_avx2;
AddFunction add_avx2;
MulFunction mul_avx2;
CopyFunction copy_avx2;
ScaleShiftCodesFunction scale_shift_codes_avx2;
ResizeNearestFunction resize_nearest_avx2;
ChannelShuffleFunction channel_shuffle_avx2;
DequantizeFunction dequantize_avx2;
QuantizeFunction quantize_avx2;
Int8MatMulFunction int8_matmul_avx2;

FloatConvFunction float_conv_avx2;
FloatDepthwiseFunction float_depthwise_avx2;
FloatGemmFunction float_gemm_avx2;
FloatMatMulFunction float_matmul_avx2;
UnaryFunction unary_avx2;
SoftmaxFunction softmax_avx2;
LayerNormFunction layer_norm_avx2;

}  // namespace octet::kernels

// The AVX-512 kernels (see the Function types of the public headers). Those named vnni need AVX512-VNNI.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

ConvFunction conv_avx512_vnni;
// 1x1 convolutions: the finish of a tile between the products of the next.
ConvTactic overlapped_tactic();
// Images of one to three channels, without the bytes that fill their pixels.
ConvTactic packed_pixels_tactic();
// Images, 7x7 kernels with stride 2: Winograd over the even and odd rows and columns.
ConvTactic image_winograd_tactic();
// Few products: the weights stay in registers.
ConvTactic resident_weights_tactic();
// Winograd with weights transformed in every run.
ConvTactic lean_winograd_tactic();
// Winograd with weights transformed in registers, for the fewest tiles.
ConvTactic register_winograd_tactic();
DepthwiseFunction depthwise_avx512_vnni;
MaxPoolFunction max_pool_avx512;
AveragePoolFunction average_pool_avx512;
GlobalAverageFunction global_average_avx512;
PixelConvFunction pixel_conv_avx512_vnni;
RowSumsFunction row_sums_avx512;
MeanOfSumsFunction mean_of_sums_avx512;
AddFunction add_avx512;
MulFunction mul_avx512;
CopyFunction copy_avx512;
ScaleShiftCodesFunction scale_shift_codes_avx512;
QuantizeFunction quantize_avx512;
DequantizeFunction dequantize_avx512;

FloatConvFunction float_conv_avx512;
FloatDepthwiseFunction float_depthwise_avx512;
FloatGemmFunction float_gemm_avx512;
FloatMatMulFunction float_matmul_avx512;
UnaryFunction unary_avx512;
SoftmaxFunction softmax_avx512;
LayerNormFunction layer_norm_avx512;

}  // namespace octet::kernels

#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/isa_kernels.h"
#include "engine/kernels/winograd/tactic.h"

namespace octet::kernels {

void add_avx2_kernels(KernelTable& table) {
  constexpr Isa kIsa = Isa::kAvx2;
  set_direct_conv(table, conv_avx2, kIsa, [](const ConvArgs& a, int threads) { return cost_at_rate(a, threads, 12); });
  table.conv_tactics.insert(table.conv_tactics.begin(), words_avx2());
  table.conv_tactics.insert(table.conv_tactics.begin(), bytes_avx2());
  add_winograd(table, kIsa);
  table.residual_sum_fuses = residual_sum_fuses_avx2;
  table.depthwise = {depthwise_avx2, kIsa};
  table.max_pool = {max_pool_avx2, kIsa};
  table.global_average = {global_average_avx2, kIsa};
  table.average_pool = {average_pool_avx2, kIsa};
  table.pixel_conv = {pixel_conv_avx2, kIsa};
  table.row_sums = {row_sums_avx2, kIsa};
  table.mean_of_sums = {mean_of_sums_avx2, kIsa};
  table.add = {add_avx2, kIsa};
  table.mul = {mul_avx2, kIsa};
  table.copy = {copy_avx2, kIsa};
  table.scale_shift_codes = {scale_shift_codes_avx2, kIsa};
  table.resize_nearest = {resize_nearest_avx2, kIsa};
  table.channel_shuffle = {channel_shuffle_avx2, kIsa};
  table.dequantize = {dequantize_avx2, kIsa};
  table.quantize = {quantize_avx2, kIsa};
  table.int8_matmul = {int8_matmul_avx2, kIsa};
  table.float_conv = {float_conv_avx2, kIsa};
  table.float_depthwise = {float_depthwise_avx2, kIsa};
  table.float_gemm = {float_gemm_avx2, kIsa};
  table.float_matmul = {float_matmul_avx2, kIsa};
  table.unary = {unary_avx2, kIsa};
  table.softmax = {softmax_avx2, kIsa};
  table.layer_norm = {layer_norm_avx2, kIsa};
}

}  // namespace octet::kernels

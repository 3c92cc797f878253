#include "engine/kernels/avx2/functions.h"
#include "engine/kernels/avx512_vnni/functions.h"
#include "engine/kernels/cpu_model.h"
#include "engine/kernels/isa_kernels.h"
#include "engine/kernels/winograd/tactic.h"

namespace octet::kernels {
namespace {

// The dot products, and what turns each 16 sums into codes.
double direct_cost(const ConvArgs& a, int threads) {
  const QTensor& out = a.epilogue.out;
  const double outputs = static_cast<double>(out.n * out.h * out.w) * static_cast<double>(a.geometry.out_channels);
  const double finish = a.epilogue.residual.data == nullptr ? 4 : a.epilogue.rounds_twice ? 8 : 6;  // cycles
  return 0.7 + cost_at_rate(a, threads, 105) + outputs / 16 * finish / (cpu_model().cycles_per_us * threads);
}

}  // namespace

void add_avx512_vnni_kernels(KernelTable& table) {
  constexpr Isa kIsa = Isa::kAvx512Vnni;
  add_winograd(table, kIsa);
  table.conv_tactics.push_back(overlapped_tactic());
  table.conv_tactics.push_back(packed_pixels_tactic());
  table.conv_tactics.push_back(image_winograd_tactic());
  table.conv_tactics.push_back(resident_weights_tactic());
  table.conv_tactics.push_back(lean_winograd_tactic());
  table.conv_tactics.push_back(register_winograd_tactic());
  set_direct_conv(table, conv_avx512_vnni, kIsa, direct_cost);
  table.conv_tactics.back().fetches_ahead = true;
  table.make_residual_tables = make_residual_tables_avx2;
  table.depthwise = {depthwise_avx512_vnni, kIsa};
  table.max_pool = {max_pool_avx512, kIsa};
  table.average_pool = {average_pool_avx512, kIsa};
  table.global_average = {global_average_avx512, kIsa};
  table.pixel_conv = {pixel_conv_avx512_vnni, kIsa};
  table.row_sums = {row_sums_avx512, kIsa};
  table.mean_of_sums = {mean_of_sums_avx512, kIsa};
  table.add = {add_avx512, kIsa};
  table.mul = {mul_avx512, kIsa};
  table.copy = {copy_avx512, kIsa};
  table.scale_shift_codes = {scale_shift_codes_avx512, kIsa};
  table.quantize = {quantize_avx512, kIsa};
  table.dequantize = {dequantize_avx512, kIsa};
  table.float_conv = {float_conv_avx512, kIsa};
  table.float_depthwise = {float_depthwise_avx512, kIsa};
  table.float_gemm = {float_gemm_avx512, kIsa};
  table.float_matmul = {float_matmul_avx512, kIsa};
  table.unary = {unary_avx512, kIsa};
  table.softmax = {softmax_avx512, kIsa};
  table.layer_norm = {layer_norm_avx512, kIsa};
}

}  // namespace octet::kernels

// Float steps with weights or windows.
#pragma once
#include "engine/step_kinds.h"

namespace octet::engine {

// Inputs: the tensor, and with "residual" = 1 one more of the output's shape. Constants: weights, bias. Numbers: those
// of read_conv_geometry (a product of matrices: k, n), float_lo, float_hi.
PreparedStep prepare_float_conv(const Plan& plan, const Step& step, const kernels::KernelTable& table);
PreparedStep prepare_float_depthwise(const Plan& plan, const Step& step, const kernels::KernelTable& table);
PreparedStep prepare_float_conv_transpose(const Plan& plan, const Step& step, const kernels::KernelTable& table);
PreparedStep prepare_float_gemm(const Plan& plan, const Step& step, const kernels::KernelTable& table);
// Two computed matrices. Numbers: batches, m, n, k, a_batch_stride, b_batch_stride.
PreparedStep prepare_float_matmul(const Plan& plan, const Step& step, const kernels::KernelTable& table);
// Numbers: those of read_pool_window, average, count_include_pad.
PreparedStep prepare_float_pool(const Plan& plan, const Step& step, const kernels::KernelTable& table);

}  // namespace octet::engine

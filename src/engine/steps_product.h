// Steps of products of two activations on codes, as attention has them.
#pragma once
#include "engine/step_kinds.h"

namespace octet::engine {

// Floats to code_rows or code_columns, from wherever the elements lie. Input: dense floats; output: [n][h][w][c] as
// Buffer::code_rows() has it. Lists: in_strides, those of n, h, w and c in the input; number: in_offset.
PreparedStep prepare_quantize_rows(const Plan& plan, const Step& step, const kernels::KernelTable& table);

// y = a b for each pair of matrices (kernels::Int8MatMulArgs). Inputs: a [..., m, k] as code_rows, b [..., k, n] as
// code_rows or code_columns, with as many matrices; output: dense floats [..., m, n].
PreparedStep prepare_int8_matmul(const Plan& plan, const Step& step, const kernels::KernelTable& table);

}  // namespace octet::engine

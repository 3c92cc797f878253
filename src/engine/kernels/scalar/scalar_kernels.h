// The reference: every kernel in plain C++, straight from numerics/quantize.h.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

void add_scalar_int8_conv(KernelTable& table);
void add_scalar_int8_ops(KernelTable& table);
void add_scalar_int8_matmul(KernelTable& table);
void add_scalar_row_sums(KernelTable& table);
void add_scalar_float_conv(KernelTable& table);
void add_scalar_float_functions(KernelTable& table);
void add_scalar_float_ops(KernelTable& table);
void add_scalar_strided_copy(KernelTable& table);

// For the operations that instruction sets have no vector form of.
UnaryFunction unary_scalar;

}  // namespace octet::kernels

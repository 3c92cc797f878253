// The reference: every kernel in plain C++, straight from numerics/quantize.h.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

void add_scalar_int8_conv(KernelTable& table);
void add_scalar_int8_ops(KernelTable& table);
void add_scalar_row_sums(KernelTable& table);
void add_scalar_float_conv(KernelTable& table);
void add_scalar_float_ops(KernelTable& table);

}  // namespace octet::kernels

// For CPUs without a folder of their own: the kernels that take most of the time, in the vector types of the compiler.
// What is missing here is that of scalar/. They run on every CPU, so every machine tests them.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

void add_generic_int8_conv(KernelTable& table);
void add_generic_int8_ops(KernelTable& table);
void add_generic_float_functions(KernelTable& table);

}  // namespace octet::kernels

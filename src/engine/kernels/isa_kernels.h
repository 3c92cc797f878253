// What the instruction-set folders add to a table. Each replaces the entries that it has a faster kernel for.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

void add_avx2_kernels(KernelTable& table);
void add_avx_vnni_kernels(KernelTable& table);
void add_avx512_vnni_kernels(KernelTable& table);
void add_amx_kernels(KernelTable& table);

}  // namespace octet::kernels

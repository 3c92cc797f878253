// Winograd (winograd.h) as a tactic of the instruction sets that have it.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

// Offers "winograd4x4" of this instruction set in the table, and "row_winograd" where it has that.
void add_winograd(KernelTable& table, Isa isa);

}  // namespace octet::kernels

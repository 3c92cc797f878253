// Winograd (winograd.h) as a tactic of the instruction sets that have it.
#pragma once
#include "engine/kernels/kernel_table.h"

namespace octet::kernels {

// Offers "winograd4x4" of this instruction set in the table.
void add_winograd(KernelTable& table, Isa isa);

}  // namespace octet::kernels

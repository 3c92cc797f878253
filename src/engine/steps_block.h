// Steps that do a whole block of a network.
#pragma once
#include "engine/step_kinds.h"

namespace octet::engine {

class StepReader;

// `sums` holds the row sums of `codes` (n x h x padded channels); refused where they could overflow.
void check_row_sums(const StepReader& reader, const Buffer& codes, const Buffer& sums);
// Sums of the codes of rows (kernels::RowSumsArgs) for a later squeeze_excite. Input: codes; output: sums, n x h x
// padded channels.
PreparedStep prepare_row_sums(const Plan& plan, const Step& step, const kernels::KernelTable& table);

// y = x * gate(mean of x over the image): squeeze-and-excite, everything but the sums. Every thread computes the small
// gate for itself and multiplies its rows by it, so that no thread waits for another.
// Inputs: x, its row sums; output: y. Numbers: mean_scale, mean_zero_point, mean_lo, mean_hi (stored codes of the
// mean); layers, and for each "0_channels", "0_zero_point", "0_lo", "0_hi" (before the table) with the constants
// "0_weights", "0_acc_init", "0_multiplier" and maybe "0_table" as those of a 1x1 convolution; gate_zero_point,
// multiplier, lo, hi as those of mul.
PreparedStep prepare_squeeze_excite(const Plan& plan, const Step& step, const kernels::KernelTable& table);

}  // namespace octet::engine

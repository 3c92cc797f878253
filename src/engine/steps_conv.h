// Convolution steps on codes, and the geometry of all steps with windows.
#pragma once
#include "engine/step_kinds.h"
#include "engine/tactics.h"

namespace octet::engine {

class StepReader;

// Geometry of any convolution step from its numbers; positions are checked against both buffers. With `halo` (INT8) the
// windows must stay within the input's halo.
kernels::ConvGeometry read_conv_geometry(const StepReader& reader, const Buffer& in, const Buffer& out, bool halo);

// Window of a pooling step. Every window has a tap in the image.
kernels::PoolWindow read_pool_window(const StepReader& reader, const Buffer& in, const Buffer& out);

// The function of steps (kernels/code_function.h) in the constant `key`, with its numbers KEY_tail_shift and either
// KEY_line_shift or KEY_rises and KEY_turn.
void read_code_function(const StepReader& reader, const std::string& key, kernels::Epilogue* epilogue);

inline constexpr const char* kConvKind = "conv";
// The tactics that can compute this step of that kind, the one with the lowest estimate first (tactics.h).
std::vector<TacticCandidate> conv_candidates(const Plan& plan, const Step& step, const kernels::KernelTable& table,
                                             int threads);
// Inputs: codes, and with "residual" = 1 the residual (codes, or floats where the output is float). Constants: weights,
// acc_init, multiplier, table or function. Numbers: geometry, zero_point (before the table), lo, hi,
// residual_multiplier, mid_* (a residual that rounds twice), float_lo, float_hi. Depthwise with "row_sums" has the sums
// of its rows as second output (steps_block.h).
PreparedStep prepare_conv(const Plan& plan, const Step& step, const kernels::KernelTable& table);
PreparedStep prepare_depthwise(const Plan& plan, const Step& step, const kernels::KernelTable& table);

}  // namespace octet::engine

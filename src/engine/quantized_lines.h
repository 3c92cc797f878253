// Steps that compute lines of floats and give their codes: a few lines at a time, so that the floats stay in the cache.
#pragma once
#include <functional>

#include "engine/step_reader.h"

namespace octet::engine {

// Writes the floats of these lines to `out`, one behind the other.
using LinesOfFloats = std::function<void(const Memory& memory, kernels::Range lines, float* out)>;

// The output is codes of rank 2 or code_rows, each row one of `lines` lines of `length` elements.
PreparedStep quantized_lines(const StepReader& reader, const kernels::KernelTable& table, Isa isa, int64_t lines,
                             int64_t length, LinesOfFloats make);

}  // namespace octet::engine

// Functions of the sums of a convolution, as kernels take them (engine/kernels/code_function.h).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "numerics/quantize.h"

namespace octet::lower {

struct StepFunction {
  float scale = 0;  // of a step
  int32_t rises = 0, turn = -128, tail_shift = 0;
  std::vector<uint8_t> rows;
  // What sums are rounded to.
  numerics::QuantParams steps() const;
};

// `code_of` gives the stored code of a real number; no sum is larger than `reach`. The steps are as fine as the range
// allows in which the code changes. Nothing for functions that need finer ones, or fall behind a rise.
std::optional<StepFunction> step_function(const std::function<uint8_t(float)>& code_of, float reach);

}  // namespace octet::lower

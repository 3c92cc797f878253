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
  int32_t tail_shift = 0;
  int32_t rises = 0, turn = -128;  // of rows
  int32_t line_shift = 0;          // of lines; 0: rows
  std::vector<uint8_t> table;      // the rows, or the lines
  // What sums are rounded to.
  numerics::QuantParams steps() const;
};

// kExact: rows, which have the code of every step. kClose: lines, where these are within a few hundredths of a code of
// the function.
enum class Fit { kExact, kClose };

// `code_of` gives the stored code of a real number; no sum is larger than `reach`. The steps are as fine as the range
// allows in which the code changes. Nothing for functions that need finer steps, or fall behind a rise.
std::optional<StepFunction> step_function(const std::function<uint8_t(float)>& code_of, float reach, Fit fit);

}  // namespace octet::lower

// Rounding of weights that makes up for its own error (train/gptq.h).
#pragma once
#include <cstdint>

#include "schema/enum_names.h"

namespace octet::quant {

struct GptqOptions {
  int64_t images = 0;     // of the calibration images; 0: off
  double damping = 0.03;  // times the mean square of what a layer reads
};
void describe(schema::Section& s, GptqOptions& options);

}  // namespace octet::quant

// The fastest loop of multiply-accumulates that an instruction set allows: operands in registers, enough accumulators
// to hide the latency, nothing else. What kernels reach is stated as a percentage of it.
#pragma once
#include <cstdint>

#include "base/cpu_features.h"

namespace octet::kernels {

struct PeakLoop {
  const char* instruction = "";  // "tdpbusd"
  int64_t macs = 0;              // of one iteration
  void (*run)(int64_t iterations) = nullptr;
};

// u8 x s8 -> s32, exact: tdpbusd, vpdpbusd, or vpmaddwd on 16-bit operands where there is no exact 8-bit product. The
// CPU must have the instruction set (isa_supported).
PeakLoop int8_peak_loop(Isa isa);
// float32: fused multiply-add.
PeakLoop float_peak_loop(Isa isa);

}  // namespace octet::kernels

// What a step has to do, read off its numbers: for reports (GMAC/s, percent of peak, GB/s). Row
// bands weigh repeated products by it; kernels are never chosen by it (ConvTactic::cost).
#pragma once
#include <cstdint>
#include <optional>

#include "engine/plan.h"

namespace octet::engine {

struct StepCost {
  // Multiply-accumulates of the convolution or matrix product as the graph states it, padding included; 0 for steps
  // without one. A kernel may do with fewer (Winograd). Empty for a kind of step that this file does not know.
  std::optional<int64_t> macs;
  // Bytes of the step's inputs, outputs and constants, each counted once: what must move at least.
  int64_t bytes = 0;
};

StepCost step_cost(const Plan& plan, const Step& step);

}  // namespace octet::engine

// Runs of small plans in fuzzers.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/executor.h"
#include "engine/step_cost.h"

namespace octet::testing {

// What keeps one input fast; plans beyond it are only made and checked.
inline bool is_tiny(const engine::Plan& plan) {
  constexpr int64_t kMaxArena = 1 << 20, kMaxElements = 1 << 16, kMaxSteps = 64, kMaxMacs = 1 << 24;
  if (std::cmp_greater(plan.steps.size(), kMaxSteps) || plan.arena_bytes > kMaxArena) return false;
  for (const engine::Buffer& b : plan.buffers)
    if (b.elements() > kMaxElements) return false;
  int64_t macs = 0;
  for (const engine::Step& s : plan.steps) {
    // Pooling windows and matrix products may be far larger than their buffers.
    for (const auto& [key, value] : s.ints)
      if (value > 4096) return false;
    const int64_t step = engine::step_cost(plan, s).macs.value_or(0);
    if (step > kMaxMacs || (macs += step) > kMaxMacs) return false;
  }
  return true;
}

// The plan's outputs for inputs that are functions of `seed`: all 0.5 where it is 0. `tensors`: gets every tensor that
// the plan keeps, too.
inline std::vector<std::vector<float>> run_plan(const std::shared_ptr<const engine::Plan>& plan, Isa isa, int threads,
                                                uint32_t seed = 0, std::vector<engine::TensorDump>* tensors = nullptr) {
  engine::Executor executor(plan, {.threads = threads,
                                   .isa = isa,
                                   .team = {},
                                   .row_bands = {},
                                   .program = {.memory_bytes = 1 << 16, .iterations = 100}});
  std::vector<std::vector<float>> inputs, outputs;
  std::vector<const float*> in;
  std::vector<float*> out;
  uint32_t state = seed;
  for (int id : plan->inputs) {
    inputs.emplace_back(plan->buffers[id].elements(), 0.5f);
    for (float& v : inputs.back()) {
      if (seed == 0) break;
      state = state * 1664525u + 1013904223u;
      v = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-30f;
    }
  }
  for (int id : plan->outputs) outputs.emplace_back(plan->buffers[id].elements());
  for (const auto& tensor : inputs) in.push_back(tensor.data());
  for (auto& tensor : outputs) out.push_back(tensor.data());
  if (tensors != nullptr) *tensors = executor.run_and_dump(in.data(), out.data());
  executor.run(in.data(), out.data());
  return outputs;
}

}  // namespace octet::testing

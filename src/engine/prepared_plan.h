// A plan made ready for one instruction set: a kernel for every step, and the weights that a kernel wants in an order
// of its own. Read-only once made, so executors in any number of threads share it.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_memory.h"
#include "base/cpu_features.h"
#include "engine/plan.h"
#include "engine/prepared_program.h"
#include "engine/step_kinds.h"

namespace octet::engine {

class PreparedPlan {
 public:
  // `plan` has passed validate(). UserError when this CPU lacks the instruction set or memory cannot be had.
  PreparedPlan(std::shared_ptr<const Plan> plan, Isa isa);

  const Plan& plan() const { return *plan_; }
  Isa isa() const { return isa_; }
  std::span<const PreparedStep> steps() const { return steps_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }           // of every thread, a multiple of 64
  const PreparedProgram* program() const { return program_.get(); }  // behind the plan; nullptr: none
  int64_t kept_bytes() const { return kept_bytes_; }                 // of every thread of an executor, a multiple of 64
  int64_t derived_bytes() const { return derived_bytes_; }           // of weights beside those of the plan

 private:
  void derive_weights();

  std::shared_ptr<const Plan> plan_;
  Isa isa_;
  std::vector<PreparedStep> steps_;
  std::shared_ptr<const PreparedProgram> program_;
  AlignedMemory derived_;
  int64_t scratch_bytes_ = 0, kept_bytes_ = 0, derived_bytes_ = 0;
};

}  // namespace octet::engine

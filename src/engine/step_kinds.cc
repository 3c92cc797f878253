#include "engine/step_kinds.h"

#include "base/error.h"

namespace octet::engine {

PreparedStep prepare_step(const Plan& plan, const Step& step, const kernels::KernelTable& kernels) {
  for (const auto kinds : {int8_step_kinds(), float_step_kinds()})
    for (const StepKind& kind : kinds)
      if (step.kind == kind.name) return kind.prepare(plan, step, kernels);
  fail("step '", step.name, "': this version of Octet has no step kind '", step.kind, "'");
}

kernels::Range share_of(int64_t work, int part, int parts) {
  return {work * part / parts, work * (part + 1) / parts};
}

}  // namespace octet::engine

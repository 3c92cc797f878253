#include "engine/prepared_plan.h"

#include <algorithm>
#include <new>

#include "base/error.h"
#include "base/parallel.h"

namespace octet::engine {
namespace {

constexpr int64_t kReadSlackBytes = 64;      // vector loads may run over the end of the weights
constexpr int64_t kParallelBytes = 1 << 21;  // fewer are done before another thread has started

int64_t rounded(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

PreparedPlan::PreparedPlan(std::shared_ptr<const Plan> plan, Isa isa) : plan_(std::move(plan)), isa_(isa) {
  if (!isa_supported(isa)) fail_usage("this CPU (", cpu_model_name(), ") does not have ", isa_name(isa));
  const kernels::KernelTable& table = kernels::kernels(isa);
  for (const Step& step : plan_->steps) {
    steps_.push_back(prepare_step(*plan_, step, table));
    scratch_bytes_ = std::max(scratch_bytes_, rounded(steps_.back().scratch_bytes));
    if (const auto& kept = steps_.back().kept) kept->offset = kept_bytes_, kept_bytes_ += rounded(kept->bytes);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].next) continue;
    // Steps that neither have such weights nor fetch any lie between.
    const auto after = std::find_if(steps_.begin() + static_cast<int64_t>(i) + 1, steps_.end(),
                                    [](const PreparedStep& step) { return step.first_weights || step.next; });
    if (after != steps_.end()) steps_[i].next->of_share = after->first_weights;
  }
  derive_weights();
  if (plan_->program) program_ = std::make_shared<const PreparedProgram>(*plan_->program, isa);
}

void PreparedPlan::derive_weights() {
  if (plan_->constants) plan_->constants->check_unchanged();
  std::vector<DerivedWeights*> open;
  for (const PreparedStep& step : steps_)
    if (step.derived) {
      open.push_back(step.derived.get());
      derived_bytes_ += rounded(step.derived->bytes);
    }
  if (open.empty()) return;
  try {
    derived_ = AlignedMemory(derived_bytes_ + kReadSlackBytes);
  } catch (const std::bad_alloc&) {
    fail("cannot allocate the ", derived_bytes_, " bytes of weights that the kernels of ", isa_name(isa_),
         " need; give the process more memory, or another instruction set by OCTET_ISA");
  }
  std::fill_n(derived_.data() + derived_bytes_, kReadSlackBytes, std::byte{0});
  std::byte* at = derived_.data();
  for (DerivedWeights* weights : open) {
    weights->data = at;
    at += rounded(weights->bytes);
  }
  // The largest first: threads that take one after the other are done at about the same time.
  std::stable_sort(open.begin(), open.end(),
                   [](const DerivedWeights* a, const DerivedWeights* b) { return a->bytes > b->bytes; });
  const int threads = derived_bytes_ < kParallelBytes ? 1 : std::min(available_cpus(), 16);
  parallel_for(static_cast<int64_t>(open.size()), threads,
               [&](int64_t i) { open[i]->make(const_cast<std::byte*>(open[i]->data)); });
  if (plan_->constants) plan_->constants->check_unchanged();
  // The kernels read these from now on, and none of those in the file.
  for (size_t i = 0; i < steps_.size(); ++i)
    if (const auto weights = plan_->steps[i].constants.find("weights");
        steps_[i].derived && weights != plan_->steps[i].constants.end())
      plan_->constants->release(plan_->constant_bytes(weights->second, 1));
}

}  // namespace octet::engine

#include "tasks/training.h"

#include <ATen/ATen.h>

#include "train/step.h"

namespace octet::tasks {

Outputs ExecutorRunner::run(const data::Batch& batch) {
  const std::vector<at::Tensor> tensors = executor_.forward({train::images_of(batch)}, train::Mode::kEval);
  values_.resize(tensors.size());
  Outputs out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor plain = tensors[i].to(at::kCPU, at::kFloat).contiguous();
    values_[i].assign(plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel());
    out.push_back({executor_.graph().outputs()[i]->name, plain.sizes().vec(), values_[i]});
  }
  return out;
}

train::Validation validation_of(const Task& task, data::Loader* loader) {
  if (loader == nullptr) return {};
  const MetricInfo metric = task.metric();
  return {.evaluate =
              [&task, loader](train::Executor& executor) {
                ExecutorRunner runner(executor);
                Metrics out;
                for (const auto& [name, value] : evaluate(runner, *loader, task)) out["val_" + name] = value;
                return out;
              },
          .metric = "val_" + metric.name,
          .larger_is_better = metric.larger_is_better};
}

}  // namespace octet::tasks

#include "tasks/training.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "train/step.h"

namespace octet::tasks {

#define OCTET_TASK(name, summary)                                  \
  namespace name {                                                 \
  std::unique_ptr<train::Loss> make_loss(const tasks::Task& task); \
  }
#include "tasks/tasks.def"
#undef OCTET_TASK

std::unique_ptr<train::Loss> make_loss(const TaskChoice& task) {
#define OCTET_TASK(known, summary) \
  if (task.name() == #known) return known::make_loss(*task);
#include "tasks/tasks.def"
#undef OCTET_TASK
  OCTET_CHECK(false, task.name());
  return nullptr;
}

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

train::Validation validation_of(const Task& task, data::Loader* loader,
                                std::function<void(const Outputs&, const data::Batch&)> watch) {
  if (loader == nullptr) return {};
  const MetricInfo metric = task.metrics().at(0);
  const auto measure = [&task, loader, watch = std::move(watch)](train::Executor& executor) {
    ExecutorRunner runner(executor);
    const std::unique_ptr<Evaluator> evaluator = task.evaluator();
    run_all(runner, *loader, [&](const Outputs& outputs, const data::Batch& batch) {
      evaluator->add(outputs, batch);
      if (watch) watch(outputs, batch);
    });
    Metrics out;
    for (const auto& [name, value] : evaluator->result()) out["val_" + name] = value;
    return out;
  };
  return {.evaluate = measure, .metric = "val_" + metric.name, .larger_is_better = metric.larger_is_better};
}

}  // namespace octet::tasks

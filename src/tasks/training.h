// Where tasks meet the trainer.
#pragma once
#include "tasks/evaluate.h"
#include "tasks/registry.h"
#include "train/trainer.h"

namespace octet::tasks {

// A Runner over an executor, which is not owned: its graph is the task's executed graph.
class ExecutorRunner : public Runner {
 public:
  explicit ExecutorRunner(train::Executor& executor) : executor_(executor) {}
  Outputs run(const data::Batch& batch) override;

 private:
  train::Executor& executor_;
  std::vector<std::vector<float>> values_;
};

// What descends for the chosen task, with its options.
std::unique_ptr<train::Loss> make_loss(const TaskChoice& task);

// The task's metrics, each as val_NAME, on the images of `loader`; none where that is null. Nothing is owned. `watch`
// is shown every batch of a validation. Of several ranks each runs its part of the batches, rank 0 sees what comes out
// of all of them in their order, without the pixels, and so gets the metrics that it would have had alone.
train::Validation validation_of(const Task& task, data::Loader* loader,
                                std::function<void(const Outputs&, const data::Batch&)> watch = {},
                                train::Communicator& communicator = train::single_process());

}  // namespace octet::tasks

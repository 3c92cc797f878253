#include "tasks/evaluate.h"

#include "base/error.h"

namespace octet::tasks {

Metrics evaluate(Runner& runner, data::Loader& loader, const Task& task, const std::function<void(int64_t)>& progress) {
  const std::unique_ptr<Evaluator> evaluator = task.evaluator();
  int64_t images = 0;
  loader.start_epoch(0);
  while (const std::optional<data::Batch> batch = loader.next()) {
    evaluator->add(runner.run(*batch), *batch);
    images += batch->size;
    if (progress) progress(images);
  }
  if (images == 0) fail("there is no image to evaluate");
  return evaluator->result();
}

}  // namespace octet::tasks

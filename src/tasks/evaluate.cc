#include "tasks/evaluate.h"

#include "base/error.h"

namespace octet::tasks {

int64_t run_all(Runner& runner, data::Loader& loader,
                const std::function<void(const Outputs&, const data::Batch&)>& take,
                const std::function<void(int64_t)>& progress) {
  int64_t images = 0;
  loader.start_epoch(0);
  while (const std::optional<data::Batch> batch = loader.next()) {
    take(runner.run(*batch), *batch);
    images += batch->size;
    if (progress) progress(images);
  }
  if (images == 0) fail("there is no image to evaluate");
  return images;
}

Metrics evaluate(Runner& runner, data::Loader& loader, const Task& task, const std::function<void(int64_t)>& progress) {
  const std::unique_ptr<Evaluator> evaluator = task.evaluator();
  run_all(
      runner, loader, [&](const Outputs& outputs, const data::Batch& batch) { evaluator->add(outputs, batch); },
      progress);
  return evaluator->result();
}

}  // namespace octet::tasks

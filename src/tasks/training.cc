#include "tasks/training.h"

#include <ATen/ATen.h>

#include "base/byte_stream.h"
#include "base/error.h"
#include "tasks/batch_message.h"
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

namespace {

using Watch = std::function<void(const Outputs&, const data::Batch&)>;

// Gives what comes out of the batches of all ranks to `take`, in the order of the images, on rank 0.
void run_on_all_ranks(Runner& runner, data::Loader& loader, train::Communicator& communicator, const Watch& take) {
  loader.start_epoch(0);
  int64_t images = 0;
  for (int64_t round = 0; round < loader.batches_per_epoch(); ++round) {
    const std::optional<data::Batch> batch = loader.next();
    for (const std::string& message : communicator.gather(batch ? batch_message(runner.run(*batch), *batch) : "")) {
      if (message.empty()) continue;  // the images were fewer, or all damaged
      const ReceivedBatch received(message);
      take(received.outputs(), received.batch());
      images += received.batch().size;
    }
  }
  if (communicator.rank() == 0 && images == 0) fail("there is no image to evaluate");
}

Metrics of_rank_0(const Metrics& metrics, train::Communicator& communicator) {
  ByteWriter out;
  for (const auto& [name, value] : metrics) {
    out.put_text(name);
    out.put(value);
  }
  const std::string bytes = communicator.broadcast(out.take());
  ByteReader in(bytes);
  Metrics all;
  while (!in.at_end()) {
    const std::string name = in.get_text();
    all[name] = in.get<double>();
  }
  return all;
}

}  // namespace

train::Validation validation_of(const Task& task, data::Loader* loader, Watch watch,
                                train::Communicator& communicator) {
  if (loader == nullptr) return {};
  const MetricInfo metric = task.metrics().at(0);
  const auto measure = [&task, loader, &communicator, watch = std::move(watch)](train::Executor& executor) {
    ExecutorRunner runner(executor);
    const std::unique_ptr<Evaluator> evaluator = task.evaluator();
    const Watch take = [&](const Outputs& outputs, const data::Batch& batch) {
      evaluator->add(outputs, batch);
      if (watch) watch(outputs, batch);
    };
    Metrics out;
    if (communicator.size() == 1)
      run_all(runner, *loader, take);
    else
      run_on_all_ranks(runner, *loader, communicator, take);
    if (communicator.rank() == 0)
      for (const auto& [name, value] : evaluator->result()) out["val_" + name] = value;
    return of_rank_0(out, communicator);
  };
  return {.evaluate = measure, .metric = "val_" + metric.name, .larger_is_better = metric.larger_is_better};
}

}  // namespace octet::tasks

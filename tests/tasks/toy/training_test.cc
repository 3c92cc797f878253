// A task that no file of src/ knows is trained and measured like the others.
#include "tasks/training.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "tasks/support.h"
#include "tasks/toy/task.h"

namespace octet::tasks::toy {
namespace {

class Loss : public train::Loss {
 public:
  train::LossParts operator()(const std::vector<at::Tensor>& outputs, const data::Batch& batch) override {
    std::vector<float> truth;
    for (int64_t i = 0; i < batch.size; ++i) truth.push_back(static_cast<float>(brightness(batch, i)));
    return {{"squared_error", (outputs.at(0).flatten() - at::tensor(truth)).square().mean()}};
  }
};

TEST(ToyTask, IsTrainedAndMeasured) {
  const auto dataset = pictures_of_two(std::string("\xff\x00\x00\xff\xff\xff\x40\x00", 8), {0, 1, 2, 0});
  data::Loader loader(*dataset, {.batch_size = 4, .shuffle = true}), validation(*dataset, {.batch_size = 3});
  const Task task;
  ir::Graph network = task.build({.input = {1, 1, 2}});
  const ir::Graph executed = task.executed_graph(network);
  Loss loss;
  const auto folder = std::filesystem::temp_directory_path() / str("octet-toy-", ::getpid());
  std::filesystem::create_directories(folder);
  train::TrainerOptions trainer;
  trainer.epochs = trainer.checkpoint_interval = trainer.evaluate_interval = 100;
  trainer.optimizer.lr = 0.5;
  trainer.checkpoints = folder;
  const train::TrainResult result = train::train({.network = network,
                                                  .executed = executed,
                                                  .loader = loader,
                                                  .loss = loss,
                                                  .validation = validation_of(task, &validation)},
                                                 trainer);
  std::filesystem::remove_all(folder);
  EXPECT_LT(result.run.best_metric, 0.02);
  EXPECT_TRUE(result.run.history.back().metrics.count("val_error"));
}

}  // namespace
}  // namespace octet::tasks::toy

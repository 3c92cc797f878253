// The loop on two ranks, which train one model.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "onnx/export.h"
#include "train/small_training.h"
#include "train/thread_ranks.h"
#include "train/trainer.h"

namespace octet::train {
namespace {

using testing::quadrants;
using testing::QuadrantTask;

// Two ranks, each with pictures of its own, in one folder.
struct RankOutcome {
  TrainResult result;
  std::string model;
  int64_t steps = 0, images = 0;  // that the listener was told of
};

struct Counter : TrainListener {
  explicit Counter(RankOutcome& out) : out(out) {}
  void on_step(const StepRecord& step) override {
    ++out.steps;
    out.images += step.images;
  }
  RankOutcome& out;
};

std::vector<RankOutcome> run_on_two_ranks(const std::filesystem::path& folder, int64_t stop_at) {
  std::filesystem::create_directories(folder);
  std::vector<RankOutcome> out(2);
  testing::ThreadRanks(2).run([&](Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    const auto training = quadrants(120, 7 + static_cast<uint32_t>(rank)), held_out = quadrants(80, 9);
    data::Loader loader(*training, {.batch_size = 16, .shuffle = true, .drop_last = true});
    data::Loader validation(*held_out, {.batch_size = 40});
    QuadrantTask task(&validation);
    ir::Graph graph = testing::small_network(false);
    const ir::Graph executed = graph.clone();
    Counter counter(out[rank]);
    TrainerOptions o;
    o.epochs = 2;
    o.optimizer.lr = 0.1;
    o.checkpoints = folder;
    int64_t asked = 0;
    // Only one of them hears the signal.
    if (stop_at >= 0 && rank == 1) o.stop_requested = [&] { return ++asked >= stop_at; };
    out[rank].result = train({.network = graph,
                              .executed = executed,
                              .loader = loader,
                              .loss = task,
                              .validation = task.measure(),
                              .communicator = communicator},
                             o, &counter);
    out[rank].model = onnx::export_bytes(graph, {.quantize_weights = false});
  });
  return out;
}

TEST(TrainerRanks, EndWithTheSameModelAndTheFirstOneSpeaks) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / str("octet-trainer-ranks-", ::getpid());
  const std::vector<RankOutcome> whole = run_on_two_ranks(folder / "whole", -1);
  EXPECT_EQ(whole[0].model, whole[1].model);
  EXPECT_EQ(whole[0].result.run.history.back().loss, whole[1].result.run.history.back().loss);
  EXPECT_GT(whole[0].result.run.best_metric, 0.9);
  EXPECT_EQ(whole[0].steps, 2 * 7);
  EXPECT_EQ(whole[0].images, 2 * 7 * 2 * 16);
  EXPECT_EQ(whole[1].steps, 0);
  const std::vector<RankOutcome> stopped = run_on_two_ranks(folder / "stopped", 4);
  EXPECT_TRUE(stopped[0].result.stopped && stopped[1].result.stopped);
  EXPECT_TRUE(std::filesystem::exists(folder / "stopped" / "epoch-0-batch-4"));
  const std::vector<RankOutcome> resumed = run_on_two_ranks(folder / "stopped", -1);
  EXPECT_EQ(resumed[0].model, whole[0].model);
  EXPECT_EQ(resumed[1].model, whole[0].model);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace octet::train

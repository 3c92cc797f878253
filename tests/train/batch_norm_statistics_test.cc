// Statistics of batch norms that are measured anew.
#include "train/batch_norm_statistics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "train/small_training.h"
#include "train/step.h"

namespace octet::train {
namespace {

using testing::quadrants;
using testing::QuadrantTask;
using testing::small_network;
using testing::state_of;

// Of what the convolution gives, from its own numbers: the mean over the batches.
TEST(BatchNormStatistics, AreTheMeanOfThoseOfTheBatches) {
  const auto pictures = quadrants(64, 7);
  for (const int64_t images : {16, 20, 64, 1000}) {
    const int64_t batches = std::min<int64_t>((images + 15) / 16, 4);
    data::Loader loader(*pictures, {.batch_size = 16, .threads = 1});
    Executor executor(small_network(false));
    at::Tensor mean = at::zeros({8}, at::kDouble), variance = at::zeros({8}, at::kDouble);
    executor.set_tap(
        [&](const ir::Value&, const at::Tensor& t) {
          const at::Tensor rows = t.detach().permute({1, 0, 2, 3}).flatten(1).to(at::kDouble);
          mean += rows.mean(1), variance += rows.var(1, true);
        },
        {"conv"});
    loader.start_epoch(3);
    for (int64_t i = 0; i < batches; ++i) executor.forward({images_of(*loader.next())}, Mode::kEval);
    executor.set_tap({});
    const auto before = state_of(executor);
    executor.set_batch_norm_frozen(true);  // as at the end of some trainings
    executor.set_step(7);
    EXPECT_EQ(reestimate_batch_norm(executor, loader, 3, images, single_process()), 1);
    EXPECT_EQ(executor.step(), 7);
    for (const auto& [name, tensor] : state_of(executor)) {
      const at::Tensor want = name == "bn.running_mean"  ? mean / batches
                              : name == "bn.running_var" ? variance / batches
                                                         : before.at(name).to(at::kDouble);
      EXPECT_LE((tensor.to(at::kDouble) - want).abs().max().item<double>(),
                1e-5 * (1 + want.abs().max().item<double>()))
          << name << ' ' << images;
    }
  }
}

TEST(BatchNormStatistics, OfQuantizedNetworksLeaveTheScalesAlone) {
  const auto pictures = quadrants(32, 7);
  data::Loader loader(*pictures, {.batch_size = 16, .threads = 1});
  Executor executor(small_network(true), {.averaging = {.activations = 0.5, .weights = 1}});
  EXPECT_EQ(reestimate_batch_norm(executor, loader, 0, 32, single_process()), 0) << "there is no batch norm";
}

// The weights are those of the same training without it.
TEST(BatchNormStatistics, AreMeasuredAtTheEndOfATraining) {
  const auto trained = [](int64_t images) {
    const auto pictures = quadrants(64, 7);
    data::Loader loader(*pictures, {.batch_size = 16, .threads = 1});
    QuadrantTask task(nullptr);
    TrainerOptions o;
    o.epochs = 2;
    o.optimizer.lr = 0.05;
    o.batch_norm_images = images;
    o.checkpoints = std::filesystem::temp_directory_path() / ("octet_batch_norm_test_" + std::to_string(::getpid()));
    std::filesystem::remove_all(o.checkpoints);
    std::filesystem::create_directories(o.checkpoints);
    ir::Graph graph = small_network(false);
    const ir::Graph executed = graph.clone();
    train({.network = graph, .executed = executed, .loader = loader, .loss = task}, o);
    std::filesystem::remove_all(o.checkpoints);
    std::map<std::string, std::vector<float>> out;
    for (const ir::Value* value : graph.constants()) out[value->name] = value->constant->to_floats();
    return out;
  };
  const auto running = trained(0), measured = trained(64);
  for (const auto& [name, values] : running) {
    if (name == "bn.running_mean" || name == "bn.running_var") {
      EXPECT_NE(measured.at(name), values) << name;
    } else {
      EXPECT_EQ(measured.at(name), values) << name;
    }
  }
}

}  // namespace
}  // namespace octet::train

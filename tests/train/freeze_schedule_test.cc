// Batch norms and ranges that stand still from an epoch on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "train/small_training.h"

namespace octet::train {
namespace {

using testing::quadrants;
using testing::QuadrantTask;
using testing::small_network;

// Constants of the network after so many epochs.
std::map<std::string, std::vector<float>> trained(bool quantized, int64_t epochs,
                                                  const std::function<void(TrainerOptions&)>& change) {
  const auto pictures = quadrants(64, 7);
  data::Loader loader(*pictures, {.batch_size = 16, .threads = 1});
  QuadrantTask task(nullptr);
  TrainerOptions o;
  o.epochs = epochs;
  o.optimizer.lr = 0.05;
  o.schedule.type = ScheduleType::kConstant;
  o.executor.averaging = {.activations = 0.5, .weights = 1};
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("octet_freeze_test_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  o.checkpoints = folder;
  change(o);
  ir::Graph graph = small_network(quantized);
  const ir::Graph executed = graph.clone();
  train({.network = graph, .executed = executed, .loader = loader, .loss = task}, o);
  std::filesystem::remove_all(folder);
  std::map<std::string, std::vector<float>> out;
  for (const ir::Value* value : graph.constants()) out[value->name] = value->constant->to_floats();
  return out;
}

TEST(FreezeSchedule, BatchNormsKeepTheirStatistics) {
  const auto freeze = [](TrainerOptions& o) { o.freeze_batch_norm_after = 1; };
  const auto first = trained(false, 1, freeze), third = trained(false, 3, freeze),
             free = trained(false, 3, [](auto&) {});
  EXPECT_EQ(third.at("bn.running_mean"), first.at("bn.running_mean"));
  EXPECT_EQ(third.at("bn.running_var"), first.at("bn.running_var"));
  EXPECT_NE(third.at("conv.weight"), first.at("conv.weight"));
  EXPECT_NE(third.at("bn.weight"), first.at("bn.weight"));
  EXPECT_NE(free.at("bn.running_mean"), first.at("bn.running_mean"));
  const auto never = trained(false, 1, [](TrainerOptions& o) { o.freeze_batch_norm_after = 0; });
  EXPECT_EQ(never.at("bn.running_mean"), std::vector<float>(8, 0));
}

TEST(FreezeSchedule, ScalesStay) {
  const auto freeze = [](TrainerOptions& o) { o.freeze_ranges_after = 1; };
  const auto third = trained(true, 3, freeze), free = trained(true, 3, [](auto&) {});
  const auto begun = trained(true, 1, freeze);
  for (const char* scale : {"input/fake_quantize/scale", "conv.weight/fake_quantize/scale"}) {
    EXPECT_NE(begun.at(scale), trained(true, 1, [](TrainerOptions& o) { o.freeze_ranges_after = 0; }).at(scale))
        << scale;
    EXPECT_NE(free.at(scale), third.at(scale)) << scale;
  }
  EXPECT_EQ(third.at("input/fake_quantize/scale"), begun.at("input/fake_quantize/scale"));
  EXPECT_NE(third.at("conv.weight"), begun.at("conv.weight"));
}

}  // namespace
}  // namespace octet::train

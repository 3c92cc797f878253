// A pruned network trains on as any other.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "passes/prune/cut.h"
#include "train/small_training.h"

namespace octet::train {
namespace {

TEST(PrunedTraining, LearnsOn) {
  ir::Graph whole = testing::small_network(false);
  const passes::ChannelGroups groups(whole, {.granularity = 1, .min_filters = 4});
  const ir::Graph pruned = passes::cut_channels(whole, groups.at(groups.scores().back()));
  ASSERT_EQ(pruned.find_value("conv.weight")->constant->shape(), (ir::Shape{4, 1, 3, 3}));
  ASSERT_EQ(pruned.find_value("fc.weight")->constant->shape(), (ir::Shape{4, 16}));
  Executor executor(pruned);
  EXPECT_EQ(executor.named_parameters().size(), Executor(whole).named_parameters().size());
  const auto pictures = testing::quadrants(240, 7);
  std::vector<double> losses;
  for (int epoch = 0; epoch < 6; ++epoch)
    for (const data::Batch& batch : testing::batches_of(*pictures, 40)) {
      const at::Tensor x = at::from_blob(const_cast<float*>(batch.images.data()), {batch.size, 1, 8, 8});
      std::vector<int64_t> labels = batch.labels();
      const at::Tensor loss = at::cross_entropy_loss(executor.forward({x}, Mode::kTrain)[0],
                                                     at::from_blob(labels.data(), {batch.size}, at::kLong));
      loss.backward();
      losses.push_back(loss.item<double>());
      const at::NoGradGuard no_grad;
      for (auto& [name, parameter] : executor.named_parameters()) {
        ASSERT_TRUE(parameter.grad().defined()) << name;
        at::Tensor(parameter).sub_(0.2 * parameter.grad());
        parameter.mutable_grad().zero_();
      }
    }
  EXPECT_LT(losses.back(), 0.5 * losses.front());
  // What it learned goes back into the pruned graph.
  ir::Graph trained = pruned.clone();
  executor.write_back(trained);
  EXPECT_NE(trained.find_value("fc.weight")->constant->to_floats(),
            pruned.find_value("fc.weight")->constant->to_floats());
}

}  // namespace
}  // namespace octet::train

#include "tasks/classification/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tasks/classification/task.h"
#include "tasks/support.h"
#include "tasks/training.h"
#include "train/thread_ranks.h"

namespace octet::tasks::classification {
namespace {

TEST(ClassificationLoss, SmoothsLabelsAsPublished) {
  const auto dataset = pictures_of_two(std::string("\xff\x00", 2), {0});
  data::Loader loader(*dataset, {.batch_size = 1});
  loader.start_epoch(0);
  const std::optional<data::Batch> batch = loader.next();
  ASSERT_TRUE(batch.has_value());
  Loss loss({.label_smoothing = 0.1});
  const at::Tensor logits = at::tensor({1.0f, 0.0f}).reshape({1, 2});
  const double log_p0 = -std::log(1 + std::exp(-1.0)), log_p1 = -std::log(1 + std::exp(1.0));
  EXPECT_NEAR(loss({logits}, *batch).at(0).second.item<double>(), -(0.95 * log_p0 + 0.05 * log_p1), 1e-6);
}

TEST(Validation, MeasuresAnExecutor) {
  const auto dataset = pictures_of_two(std::string("\xff\x00\x00\xff\xff\x00", 6), {0, 1, 1});
  data::Loader loader(*dataset, {.batch_size = 2});
  const Task task({.top_k = 2});
  train::Executor executor(task.executed_graph(brighter_pixel()));
  const train::Validation validation = validation_of(task, &loader);
  EXPECT_EQ(validation.metric, "val_top1");
  EXPECT_NEAR(validation.evaluate(executor).at("val_top1"), 200.0 / 3, 1e-9);
  EXPECT_FALSE(validation_of(task, nullptr).evaluate);
}

// However many ranks share the batches, each gets the metrics of one process, to the bit.
TEST(Validation, OfSeveralRanksIsThatOfOne) {
  std::string pixels;
  std::vector<int> labels;
  for (int i = 0; i < 25; ++i) {
    pixels += static_cast<char>(i * 37 % 251);
    pixels += static_cast<char>(i * 91 % 241);
    labels.push_back(i % 2);
  }
  const auto dataset = pictures_of_two(pixels, labels);
  const Task task({.top_k = 2});
  data::Loader all(*dataset, {.batch_size = 4});
  train::Executor executor(task.executed_graph(brighter_pixel()));
  const Metrics alone = validation_of(task, &all).evaluate(executor);
  for (const int ranks : {2, 3, 4}) {
    std::vector<Metrics> found(static_cast<size_t>(ranks));
    std::vector<std::vector<int64_t>> watched(found.size());
    train::testing::ThreadRanks(ranks).run([&](train::Communicator& communicator) {
      data::Loader loader(*dataset, {.batch_size = 4, .share = {communicator.rank(), communicator.size()}});
      train::Executor own(task.executed_graph(brighter_pixel()));
      const auto rank = static_cast<size_t>(communicator.rank());
      const auto watch = [&](const Outputs&, const data::Batch& batch) {
        watched[rank].insert(watched[rank].end(), batch.indices.begin(), batch.indices.end());
      };
      found[rank] = validation_of(task, &loader, watch, communicator).evaluate(own);
    });
    for (const Metrics& each : found) EXPECT_EQ(each, alone) << ranks;
    std::vector<int64_t> in_order(25);
    std::iota(in_order.begin(), in_order.end(), 0);
    EXPECT_EQ(watched[0], in_order);
    EXPECT_TRUE(watched[1].empty());
  }
}

}  // namespace
}  // namespace octet::tasks::classification

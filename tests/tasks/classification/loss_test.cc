#include "tasks/classification/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tasks/classification/task.h"
#include "tasks/support.h"
#include "tasks/training.h"

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

}  // namespace
}  // namespace octet::tasks::classification

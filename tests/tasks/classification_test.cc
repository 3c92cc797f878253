#include "tasks/classification.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/memory_dataset.h"
#include "ir/infer.h"
#include "tasks/graph_runner.h"

namespace octet::tasks {
namespace {

using ir::OpKind;
using ir::Tensor;

// Scores of a 1x1x2 picture (a, b) are (a, b): class 0 where the left pixel is the brighter one.
ir::Graph brighter_pixel() {
  ir::Graph g;
  ir::Value* x = g.add_input("input", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 1, 1, 2}});
  g.add_output(g.add(OpKind::kFlatten, "logits", {x}));
  ir::infer_shapes(g);
  return g;
}

std::unique_ptr<data::Dataset> pictures(const std::string& pixels, std::vector<int> labels) {
  data::MemoryDataset::Contents contents;
  contents.height = contents.channels = 1;
  contents.width = 2;
  contents.class_names = {"left", "right", "third"};
  contents.parts.push_back({"pictures", pixels, 0, 2, static_cast<int64_t>(labels.size())});
  contents.labels = std::move(labels);
  return std::make_unique<data::MemoryDataset>(std::move(contents), 0);
}

TEST(EvaluateClassifier, CountsHitsAndAveragesTheLoss) {
  // Three pictures: right, right, wrong.
  const auto dataset = pictures(std::string("\xff\x00\x00\xff\xff\x00", 6), {0, 1, 1});
  data::Loader loader(*dataset, {.batch_size = 2});
  train::Executor executor(brighter_pixel());
  int64_t seen = 0;
  const ClassificationResult result = evaluate_classifier(executor, loader, 2, [&](int64_t done) { seen = done; });
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(result.accuracy.images(), 3);
  EXPECT_EQ(result.accuracy.top_1_hits(), 2);
  EXPECT_EQ(result.accuracy.top_k_hits(), 3);
  EXPECT_EQ(result.predictions, (std::vector<int>{0, 1, 0}));
  const double right = std::log(1 + std::exp(-1.0)), wrong = std::log(1 + std::exp(1.0));
  EXPECT_NEAR(result.loss, (2 * right + wrong) / 3, 1e-6);
}

TEST(EvaluateClassifier, ALabelBeyondTheOutputsIsAnError) {
  const auto dataset = pictures(std::string("\xff\x00", 2), {2});
  data::Loader loader(*dataset, {.batch_size = 1});
  train::Executor executor(brighter_pixel());
  EXPECT_THROW(evaluate_classifier(executor, loader, 1), UserError);
}

TEST(ClassificationTask, SmoothsLabelsAsPublished) {
  const auto dataset = pictures(std::string("\xff\x00", 2), {0});
  data::Loader loader(*dataset, {.batch_size = 1});
  loader.start_epoch(0);
  const std::optional<data::Batch> batch = loader.next();
  ASSERT_TRUE(batch.has_value());
  ClassificationTask task({.label_smoothing = 0.1}, nullptr);
  const at::Tensor logits = at::tensor({1.0f, 0.0f}).reshape({1, 2});
  const double log_p0 = -std::log(1 + std::exp(-1.0)), log_p1 = -std::log(1 + std::exp(1.0));
  EXPECT_NEAR(task.loss({logits}, *batch).item<double>(), -(0.95 * log_p0 + 0.05 * log_p1), 1e-6);
  EXPECT_EQ(task.primary_metric(), "");
}

TEST(RequireClassifier, SaysWhatDoesNotFit) {
  const ir::Graph graph = brighter_pixel();
  EXPECT_NO_THROW(require_classifier(graph, 2));
  try {
    require_classifier(graph, 10);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("has 2 classes, the spec says model.num_classes: 10"), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), ExitCode::kUsage);
  }
}

TEST(GraphRunner, TakesSeveralInputs) {
  ir::Graph g;
  ir::Value* a = g.add_input("a", {ir::DataType::kFloat32, ir::Shape{2}});
  ir::Value* b = g.add_input("b", {ir::DataType::kFloat32, ir::Shape{2}});
  g.add_output(g.add(OpKind::kSub, "difference", {a, b}));
  GraphRunner runner(g);
  const std::vector<float> x = {3, 5}, y = {1, 7};
  const std::vector<FloatArray> out = runner.run({{{2}, x}, {{2}, y}});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].values, (std::vector<float>{2, -2}));
}

}  // namespace
}  // namespace octet::tasks

#include "tasks/detectnet_v2/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>

#include "base/error.h"
#include "data/memory_dataset.h"
#include "data/scenes.h"
#include "tasks/detectnet_v2/head.h"
#include "tasks/detectnet_v2/task.h"
#include "tasks/training.h"
#include "train/optimizer.h"

namespace octet::tasks::detectnet_v2 {
namespace {

constexpr Grid kGrid{.classes = 2, .rows = 4, .columns = 6, .stride = 16};

data::Batch batch_of(const std::vector<vision::Object>& objects) {
  data::Batch batch;
  batch.size = 1, batch.channels = 3, batch.height = kGrid.height(), batch.width = kGrid.width();
  batch.truth = {{.label = -1, .objects = objects}};
  batch.indices = {0};
  batch.geometry = {data::Geometry::whole(batch.height, batch.width)};
  return batch;
}

at::Tensor of(const std::vector<float>& values, int64_t channels) {
  return at::tensor(values).reshape({1, channels, kGrid.rows, kGrid.columns});
}

TEST(DetectNetLoss, IsTheFormulaOfTheReference) {
  const std::vector<vision::Object> objects = {{.box = {10, 8, 70, 50}, .label = 1}};
  const LossOptions options{.class_weights = {1, 2}};
  const GridTruth truth = rasterize(objects, kGrid, options.rasterizer);
  std::vector<float> coverage(truth.coverage.size()), boxes(truth.boxes.size());
  for (size_t i = 0; i < coverage.size(); ++i) coverage[i] = 0.05f + 0.9f * static_cast<float>(i % 7) / 7;
  for (size_t i = 0; i < boxes.size(); ++i) boxes[i] = truth.boxes[i] + 0.1f * static_cast<float>(i % 5);
  const size_t cells = static_cast<size_t>(kGrid.cells());
  double cov = 0, box = 0;
  for (size_t c = 0; c < 2; ++c) {
    for (size_t i = 0; i < cells; ++i) {
      const double t = truth.coverage[c * cells + i], p = coverage[c * cells + i];
      cov -= options.class_weights[c] * (t * std::log(p + 1e-5) + (1 - t) * std::log(1 - p + 1e-5)) *
             (t > 0.5 ? 0.05 : 0.95) / static_cast<double>(cells);
      for (size_t k = 0; k < 4; ++k) {
        const size_t at = (4 * c + k) * cells + i;
        box += options.class_weights[c] * std::fabs(boxes[at] - truth.boxes[at]) *
               truth.coverage_weight[c * cells + i] / static_cast<double>(4 * cells);
      }
    }
  }
  Loss loss(options);
  const train::LossParts parts = loss({of(coverage, 2), of(boxes, 8)}, batch_of(objects));
  EXPECT_NEAR(parts.at(0).second.item<double>(), cov / 11, 1e-5);
  EXPECT_NEAR(parts.at(1).second.item<double>(), box * 10 / 11, 1e-6);
  // The truth itself costs nothing but what the rounded coverage is unsure of.
  EXPECT_EQ(loss({of(truth.coverage, 2), of(truth.boxes, 8)}, batch_of(objects)).at(1).second.item<double>(), 0);
}

TEST(DetectNetLoss, NamesAnObjectOfNoClass) {
  Loss loss({});
  const at::Tensor coverage = at::zeros({1, 2, kGrid.rows, kGrid.columns}),
                   boxes = at::zeros({1, 8, kGrid.rows, kGrid.columns});
  EXPECT_THROW(loss({coverage, boxes}, batch_of({{.box = {0, 0, 9, 9}, .label = 2}})), UserError);
}

TEST(DetectNet, TruthDecodesToItself) {
  const std::vector<vision::Object> objects = {{.box = {10, 8, 70, 50}, .label = 1},
                                               {.box = {40, 4, 90, 60}, .label = 0}};
  const GridTruth truth = rasterize(objects, kGrid, LossOptions{}.rasterizer);
  const Outputs outputs = {{kCoverageOutput, {1, 2, kGrid.rows, kGrid.columns}, truth.coverage},
                           {kBoxOutput, {1, 8, kGrid.rows, kGrid.columns}, truth.boxes}};
  const Task task({.postprocessing = {.clustering = ClusteringOptions{.algorithm = Clustering::kNms}}});
  const std::unique_ptr<Evaluator> evaluator = task.evaluator();
  evaluator->add(outputs, batch_of(objects));
  EXPECT_NEAR(evaluator->result().at("map"), 100, 1e-9);
}

// Two kinds of gray pictures, in scenes.
std::unique_ptr<data::Dataset> shapes() {
  std::string bar(64, '\0'), square(64, '\xff');
  for (size_t i = 0; i < 64; ++i)
    if (i % 8 == 3 || i % 8 == 4) bar[i] = '\xff';
  data::MemoryDataset::Contents contents{.parts = {{.file = "made", .bytes = bar + square, .stride = 64, .count = 2}},
                                         .height = 8,
                                         .width = 8,
                                         .channels = 1};
  contents.labels = {0, 1}, contents.class_names = {"bar", "square"};
  return std::make_unique<data::MemoryDataset>(std::move(contents), 0);
}

// Head, ground truth, loss, trainer, decoder and evaluator together: a few scenes are learned by heart.
TEST(DetectNet, LearnsAFewScenes) {
  const auto pictures = shapes();
  const auto scenes = data::scene_dataset(
      *pictures, {.width = 96, .height = 64, .min_objects = 2, .max_objects = 3, .min_side = 20, .max_side = 40}, 4);
  data::Loader loader(*scenes, {.batch_size = 4, .shuffle = true}), validation(*scenes, {.batch_size = 4});
  ir::Graph network = add_head(models::build_backbone({.arch = "resnet20", .input = {3, 64, 96}}), 2, 4, 1);
  const Task task(
      {.postprocessing = {.clustering = ClusteringOptions{
                              .algorithm = Clustering::kNms, .coverage_threshold = 0.05, .nms_iou_threshold = 0.3}}});
  task.check(signature_of(network), 2);
  const ir::Graph executed = task.executed_graph(network);
  Loss loss({});
  const auto folder = std::filesystem::temp_directory_path() / str("octet-detectnet-", ::getpid());
  std::filesystem::create_directories(folder);
  train::TrainerOptions trainer;
  trainer.epochs = 200;
  trainer.evaluate_interval = trainer.checkpoint_interval = 200;
  trainer.optimizer.type = train::OptimizerType::kAdam;
  trainer.optimizer.lr = 3e-3;
  trainer.checkpoints = folder;
  const train::TrainResult result = train::train({.network = network,
                                                  .executed = executed,
                                                  .loader = loader,
                                                  .loss = loss,
                                                  .validation = validation_of(task, &validation)},
                                                 trainer);
  std::filesystem::remove_all(folder);
  EXPECT_GT(result.run.best_metric, 80);
  EXPECT_LT(result.run.history.back().loss, result.run.history.front().loss / 20);
}

}  // namespace
}  // namespace octet::tasks::detectnet_v2

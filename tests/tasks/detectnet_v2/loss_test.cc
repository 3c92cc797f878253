#include "tasks/detectnet_v2/loss.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/memory_dataset.h"
#include "data/scenes.h"
#include "tasks/detectnet_v2/head.h"
#include "tasks/detectnet_v2/task.h"
#include "tasks/training.h"
#include "train/optimizer.h"
#include "train/thread_ranks.h"

namespace octet::tasks::detectnet_v2 {
namespace {

constexpr Grid kLossGrid{.classes = 2, .rows = 4, .columns = 6, .stride = 16};

data::Batch batch_of(const std::vector<vision::Object>& objects) {
  data::Batch batch;
  batch.size = 1, batch.channels = 3, batch.height = kLossGrid.height(), batch.width = kLossGrid.width();
  batch.truth = {{.label = -1, .objects = objects}};
  batch.indices = {0};
  batch.geometry = {data::Geometry::whole(batch.height, batch.width)};
  return batch;
}

at::Tensor of(const std::vector<float>& values, int64_t channels) {
  return at::tensor(values).reshape({1, channels, kLossGrid.rows, kLossGrid.columns});
}

// What the network says where it is nowhere right: the truth is rasterized with `raster`.
struct Case {
  GridTruth truth;
  std::vector<float> coverage, boxes;
};

Case some_case(const std::vector<vision::Object>& objects, const RasterizerOptions& raster, float offset = 0) {
  Case c{.truth = rasterize(objects, kLossGrid, raster), .coverage = {}, .boxes = {}};
  for (size_t i = 0; i < c.truth.coverage.size(); ++i)
    c.coverage.push_back(0.05f + offset + 0.8f * static_cast<float>(i % 7) / 7);
  for (size_t i = 0; i < c.truth.boxes.size(); ++i)
    c.boxes.push_back(c.truth.boxes[i] + 0.1f * static_cast<float>(i % 5));
  return c;
}

// The formula of the reference, one number after the other: the cost of an objective (0: coverage, 1: boxes) of a
// class.
// Cells in `left_out` (row * columns + column) do not count.
double cost_of(const Case& c, size_t objective, size_t label, double foreground_weight,
               const std::vector<size_t>& left_out = {}) {
  const size_t cells = static_cast<size_t>(kLossGrid.cells());
  double sum = 0;
  for (size_t i = 0; i < cells; ++i) {
    if (std::find(left_out.begin(), left_out.end(), i) != left_out.end()) continue;
    const size_t cell = label * cells + i;
    const double t = c.truth.coverage[cell], p = c.coverage[cell];
    if (objective == 0)
      sum -= (t * std::log(p + 1e-5) + (1 - t) * std::log(1 - p + 1e-5)) *
             (t > 0.5 ? foreground_weight : 1 - foreground_weight) / static_cast<double>(cells);
    for (size_t k = 0; k < 4 && objective == 1; ++k) {
      const size_t at = (4 * label + k) * cells + i;
      sum +=
          std::fabs(c.boxes[at] - c.truth.boxes[at]) * c.truth.coverage_weight[cell] / static_cast<double>(4 * cells);
    }
  }
  return sum;
}

const std::vector<vision::Object> kObjects = {{.box = {10, 8, 70, 50}, .label = 1},
                                              {.box = {30, 0, 90, 30}, .label = 0}};

std::vector<double> values(const train::LossParts& parts) {
  std::vector<double> out;
  for (const auto& [name, part] : parts) out.push_back(part.item<double>());
  return out;
}

TEST(DetectNetLoss, IsTheFormulaOfTheReferenceForEachClass) {
  LossOptions options;
  options.costs.named = {
      {"car", {.class_weight = 3, .coverage_foreground_weight = 0.4, .coverage = {2, 1}, .bbox = {6, 1}}}};
  options.rasterizer.classes.named = {{"car", {.cov_radius_x = 0.8, .bbox_min_radius = 0.5}}};
  options.name_classes({"person", "car"});
  const Case c = some_case(kObjects, options.rasterizer);
  Loss loss(options);
  const std::vector<double> parts = values(loss({of(c.coverage, 2), of(c.boxes, 8)}, batch_of(kObjects)));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_NEAR(parts[0], 0.25 * cost_of(c, 0, 0, 0.05) / 11 + 0.75 * cost_of(c, 0, 1, 0.4) * 2 / 8, 1e-6);
  EXPECT_NEAR(parts[1], 0.25 * cost_of(c, 1, 0, 0) * 10 / 11 + 0.75 * cost_of(c, 1, 1, 0) * 6 / 8, 1e-6);
  // The truth itself costs nothing but what the rounded coverage is unsure of.
  EXPECT_EQ(values(loss({of(c.truth.coverage, 2), of(c.truth.boxes, 8)}, batch_of(kObjects)))[1], 0);
}

// Of a rank that has seen these cases: TAO's rule, by hand. Class 0 has no boxes to learn, so their cost is 0.
// TAO's source_weight.
TEST(DetectNetLoss, WeighsWholeFrames) {
  const Case c = some_case(kObjects, RasterizerOptions{});
  const auto parts_of = [&](float weight) {
    Loss loss(LossOptions{});
    data::Batch batch = batch_of(kObjects);
    batch.truth[0].weight = weight;
    std::vector<double> out;
    for (const auto& [name, part] : loss({of(c.coverage, 2), of(c.boxes, 8)}, batch))
      out.push_back(part.item<double>());
    return out;
  };
  const std::vector<double> once = parts_of(1), thrice = parts_of(3);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GT(once[i], 0);
    EXPECT_NEAR(thrice[i], 3 * once[i], 1e-5 * once[i]);
  }
  EXPECT_EQ(parts_of(0), std::vector<double>({0, 0}));
}

// TAO's loss_mask_label_filter.
TEST(DetectNetLoss, LeavesOutWhatTheMaskCovers) {
  LossOptions options;
  options.loss_mask.filters = {{.source_classes = {"DontCare"}, .target_classes = {"car"}}};
  options.name_classes({"person", "car"});
  const Case c = some_case(kObjects, options.rasterizer);
  data::Batch batch = batch_of(kObjects);
  batch.truth[0].others = {
      {.box = {30, 14, 64, 42}, .label = -1, .source_class = std::make_shared<std::string>("DontCare")}};
  const std::vector<size_t> cells = {8, 9, 14, 15};  // whose centers lie in it: columns 2 and 3 of rows 1 and 2
  const auto expect_parts = [&](size_t part, double all, double masked) {
    Loss loss(options);
    EXPECT_NEAR(values(loss({of(c.coverage, 2), of(c.boxes, 8)}, batch))[part], 0.5 * (all + masked), 1e-6);
  };
  expect_parts(0, cost_of(c, 0, 0, 0.05) / 11, cost_of(c, 0, 1, 0.05, cells) / 11);
  expect_parts(1, cost_of(c, 1, 0, 0) * 10 / 11, cost_of(c, 1, 1, 0, cells) * 10 / 11);
  EXPECT_GT(cost_of(c, 0, 1, 0.05), cost_of(c, 0, 1, 0.05, cells) + 0.001);
  EXPECT_GT(cost_of(c, 1, 1, 0), cost_of(c, 1, 1, 0, cells) + 0.001);
}

TEST(DetectNetLoss, AutoweightingIsTheRuleOfTheReference) {
  const std::vector<vision::Object> objects = {kObjects[0]};
  const LossOptions options{.costs = ClassCost{.coverage = {1, 1}, .bbox = {10, 0.03}},
                            .autoweighting = {.enabled = true, .max_objective_weight = 0.99}};
  std::vector<Case> seen;
  for (const float offset : {0.0f, 0.05f, 0.1f, 0.12f}) seen.push_back(some_case(objects, options.rasterizer, offset));
  double sums[2][2] = {};
  for (size_t objective = 0; objective < 2; ++objective)
    for (size_t label = 0; label < 2; ++label)
      for (const Case& c : seen) sums[objective][label] += cost_of(c, objective, label, 0.05);
  ASSERT_EQ(sums[1][0], 0);
  const double coverage = 1 / sums[0][1], boxes = 0.03 / sums[1][1], all = coverage + boxes;
  // Two ranks, each with half of them, agree on the weights of all.
  std::vector<at::Tensor> weights(2);
  train::testing::ThreadRanks(2).run([&](train::Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    Loss loss(options);
    for (size_t i = rank; i < seen.size(); i += 2)
      loss({of(seen[i].coverage, 2), of(seen[i].boxes, 8)}, batch_of(objects));
    EXPECT_NEAR(loss.objective_weights()[1][0].item<double>(), 10.0 / 11, 1e-12) << "within the epoch";
    loss.end_epoch(communicator);
    weights[rank] = loss.objective_weights();
  });
  EXPECT_TRUE(at::equal(weights[0], weights[1]));
  EXPECT_NEAR(weights[0][0][1].item<double>(), coverage / all, 1e-5);
  EXPECT_NEAR(weights[0][1][1].item<double>(), boxes / all, 1e-5);
  EXPECT_EQ(weights[0][0][0].item<double>(), 0.99) << "clamped";
  EXPECT_EQ(weights[0][1][0].item<double>(), 1e-4) << "clamped";
}

TEST(DetectNetLoss, WeightsStayWhereNothingCosts) {
  const LossOptions options{.costs = ClassCost{.coverage = {1, 0}, .bbox = {3, 1}}, .autoweighting = {.enabled = true}};
  const Case c = some_case({}, options.rasterizer);
  Loss loss(options);
  loss({of(c.coverage, 2), of(c.boxes, 8)}, batch_of({}));
  loss.end_epoch(train::single_process());
  EXPECT_EQ(loss.objective_weights()[0][0].item<double>(), 0.25);
  EXPECT_EQ(loss.objective_weights()[1][1].item<double>(), 0.75);
}

// Saved in the middle of an epoch, and after one.
TEST(DetectNetLoss, AutoweightingGoesOnFromACheckpoint) {
  const LossOptions options{.autoweighting = {.enabled = true}};
  std::vector<Case> seen;
  for (const float offset : {0.0f, 0.05f, 0.1f, 0.12f}) seen.push_back(some_case(kObjects, options.rasterizer, offset));
  const auto show = [&](Loss& loss, size_t i) {
    return values(loss({of(seen[i].coverage, 2), of(seen[i].boxes, 8)}, batch_of(kObjects)));
  };
  Loss whole(options), before(options), after(options);
  for (size_t i = 0; i < 3; ++i) {
    show(whole, i), show(before, i);
    if (i == 0) whole.end_epoch(train::single_process()), before.end_epoch(train::single_process());
  }
  checkpoint::NamedTensors state;
  before.save(state);
  after.load(state);
  EXPECT_EQ(show(whole, 3), show(after, 3));
  whole.end_epoch(train::single_process()), after.end_epoch(train::single_process());
  EXPECT_EQ(show(whole, 0), show(after, 0));
  EXPECT_THROW(Loss(options).load({}), UserError);
  checkpoint::NamedTensors none;
  Loss plain({});
  show(plain, 0);
  plain.save(none);
  EXPECT_TRUE(none.empty());
}

TEST(DetectNetLoss, OptionsOfAClassThatThereIsNotAreRefused) {
  LossOptions costs, raster;
  costs.costs.named = {{"Car", {.class_weight = 2}}};
  raster.rasterizer.classes.named = {{"Car", {}}};
  for (const auto& [options, key] : {std::pair(costs, "cost_function"), {raster, "bbox_rasterizer"}}) {
    LossOptions own = options;
    try {
      own.name_classes({"car", "person"});
      FAIL() << key;
    } catch (const UserError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(key));
      EXPECT_THAT(e.what(), testing::HasSubstr("'Car', which is none of the classes; did you mean 'car'?"));
    }
  }
}

TEST(DetectNetLoss, NamesAnObjectOfNoClass) {
  Loss loss({});
  const at::Tensor coverage = at::zeros({1, 2, kLossGrid.rows, kLossGrid.columns}),
                   boxes = at::zeros({1, 8, kLossGrid.rows, kLossGrid.columns});
  EXPECT_THROW(loss({coverage, boxes}, batch_of({{.box = {0, 0, 9, 9}, .label = 2}})), UserError);
}

TEST(DetectNet, TruthDecodesToItself) {
  const std::vector<vision::Object> objects = {{.box = {10, 8, 70, 50}, .label = 1},
                                               {.box = {40, 4, 90, 60}, .label = 0}};
  const GridTruth truth = rasterize(objects, kLossGrid, LossOptions{}.rasterizer);
  const Outputs outputs = {{kCoverageOutput, {1, 2, kLossGrid.rows, kLossGrid.columns}, truth.coverage},
                           {kBoxOutput, {1, 8, kLossGrid.rows, kLossGrid.columns}, truth.boxes}};
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
      *pictures, {.width = 96, .height = 64, .min_objects = 2, .max_objects = 3, .min_side = 20, .max_side = 40}, 2);
  data::Loader loader(*scenes, {.batch_size = 2, .shuffle = true}), validation(*scenes, {.batch_size = 2});
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
  trainer.epochs = 150;
  trainer.evaluate_interval = trainer.checkpoint_interval = 150;
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

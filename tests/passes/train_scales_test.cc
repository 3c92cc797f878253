#include "passes/train_scales.h"

#include <gtest/gtest.h>

#include "ir/infer.h"
#include "models/zoo.h"
#include "passes/pipelines.h"
#include "passes/place_fake_quant.h"
#include "passes/set_scales.h"

namespace octet::passes {
namespace {

using quant::ScaleGradient;

ir::Graph calibrated() {
  ir::Graph g = models::build_model({.arch = "resnet20", .num_classes = 10, .input = {1, 28, 28}});
  run_pipeline(g, training_passes());
  place_fake_quant(g);
  ir::infer_shapes(g);
  std::map<std::string, quant::Range> ranges;
  for (const auto& node : g.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize && !node->input(0)->is_constant())
      ranges[node->input(0)->name] = {.amax = 1};
  set_scales(g, ranges);
  return g;
}

std::map<std::string, int> states(const ir::Graph& g, bool of_weights) {
  std::map<std::string, int> out;
  for (const auto& node : g.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize && node->input(0)->is_constant() == of_weights)
      ++out[node->get_string("state")];
  return out;
}

TEST(TrainScales, OfWeightsAndOfActivations) {
  ir::Graph g = calibrated();
  const int weights = states(g, true).at(ir::kFrozen), activations = states(g, false).at(ir::kFrozen);
  EXPECT_EQ(train_scales(g, {}), 0);
  EXPECT_EQ(train_scales(g, {.activations = ScaleGradient::kPact, .weights = ScaleGradient::kLsq}),
            weights + activations);
  EXPECT_EQ(states(g, true), (std::map<std::string, int>{{ir::kLearned, weights}}));
  EXPECT_EQ(states(g, false), (std::map<std::string, int>{{ir::kLearnedClip, activations}}));
  // What a model was trained with before does not count.
  EXPECT_EQ(train_scales(g, {.activations = ScaleGradient::kLsq}), activations);
  EXPECT_EQ(states(g, true), (std::map<std::string, int>{{ir::kFrozen, weights}}));
  EXPECT_EQ(states(g, false), (std::map<std::string, int>{{ir::kLearned, activations}}));
}

TEST(TrainScales, GivesEachScaleAZeroPointOfItsOwn) {
  ir::Graph g = calibrated();
  ir::Value* common = g.add_constant("common", ir::Tensor::scalar<int8_t>(0));
  for (const auto& node : g.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize && !node->input(0)->is_constant()) g.set_input(node.get(), 2, common);
  EXPECT_GT(train_scales(g, {.activations = ScaleGradient::kLsqPlus}), 10);
  std::map<const ir::Value*, const ir::Value*> scale_of;
  for (const auto& node : g.nodes()) {
    if (node->kind != ir::OpKind::kFakeQuantize || node->input(0)->is_constant()) continue;
    EXPECT_EQ(node->get_string("state"), ir::kLearnedOffset);
    EXPECT_EQ(scale_of.emplace(node->input(2), node->input(1)).first->second, node->input(1)) << node->name;
  }
  EXPECT_EQ(states(g, true).count(ir::kLearnedOffset), 0u);
}

TEST(TrainScales, LeavesQuantizersThatObserve) {
  ir::Graph g = calibrated();
  for (const auto& node : g.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize) node->attributes["state"] = std::string(ir::kObserving);
  EXPECT_EQ(train_scales(g, {.activations = ScaleGradient::kLsq, .weights = ScaleGradient::kLsq}), 0);
  EXPECT_EQ(states(g, true).size(), 1u);
  EXPECT_TRUE(states(g, true).count(ir::kObserving));
}

}  // namespace
}  // namespace octet::passes

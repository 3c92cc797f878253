#include "train/adaround.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "train/small_training.h"

namespace octet::train {
namespace {

using testing::quadrants;
using testing::small_network;

// The small network with 3-bit weights.
ir::Graph coarse_network() {
  ir::Graph graph = small_network(true);
  for (const auto& node : graph.nodes()) {
    if (node->kind != ir::OpKind::kFakeQuantize || !node->input(0)->is_constant()) continue;
    node->attributes["qmin"] = int64_t{-3}, node->attributes["qmax"] = int64_t{3};
    const ir::Tensor& scale = *node->input(1)->constant;
    std::vector<float> coarse = scale.to_floats();
    for (float& s : coarse) s *= 127.0f / 3;
    graph.set_constant(node->input(1), ir::Tensor::of<float>(scale.shape(), coarse));
  }
  return graph;
}

std::vector<RoundedLayer> rounded(ir::Graph& graph, const data::Dataset& pictures, int64_t iterations) {
  data::Loader loader(pictures, {.batch_size = 32});
  return round_adaptively(graph, loader, {.iterations = iterations, .images = 96});
}

TEST(AdaRound, MakesEveryLayerMoreLikeTheFloatOne) {
  const auto pictures = quadrants(96, 3);
  ir::Graph graph = coarse_network();
  const std::vector<RoundedLayer> layers = rounded(graph, *pictures, 400);
  ASSERT_EQ(layers.size(), 1u);  // the last stays float
  int64_t moved = 0;
  for (const RoundedLayer& layer : layers) {
    EXPECT_LT(layer.rounded, 0.8 * layer.nearest) << layer.node;
    moved += layer.moved;
    // On the grid, next to where they were.
    const ir::Node& q = *graph.find_node(layer.node)->input(1)->producer;
    const std::vector<float> weights = q.input(0)->constant->to_floats(), scales = q.input(1)->constant->to_floats(),
                             before = coarse_network().find_value(layer.weight)->constant->to_floats();
    ASSERT_EQ(static_cast<int64_t>(weights.size()), layer.weights);
    const size_t run = weights.size() / scales.size();
    for (size_t i = 0; i < weights.size(); ++i) {
      const float scale = scales[i / run], code = weights[i] / scale;
      ASSERT_EQ(code, std::nearbyint(code)) << layer.node << " " << i;
      ASSERT_LE(std::abs(code), 3);
      ASSERT_LT(std::abs(weights[i] - before[i]), 1.001f * scale);
    }
  }
  EXPECT_GT(moved, 0);
  EXPECT_EQ(rounded(graph, *pictures, 20).at(0).moved, 0) << "weights on their grid move no more";
}

TEST(AdaRound, GivesTheSameBitsAgain) {
  const auto pictures = quadrants(64, 3);
  ir::Graph first = coarse_network(), second = coarse_network();
  rounded(first, *pictures, 50);
  rounded(second, *pictures, 50);
  for (const ir::Value* value : first.constants())
    EXPECT_EQ(value->constant->to_floats(), second.find_value(value->name)->constant->to_floats()) << value->name;
}

TEST(AdaRound, WithoutStepsIsRoundingToTheNearest) {
  const auto pictures = quadrants(32, 3);
  ir::Graph graph = coarse_network();
  for (const RoundedLayer& layer : rounded(graph, *pictures, 0)) {
    EXPECT_EQ(layer.moved, 0);
    EXPECT_EQ(layer.rounded, layer.nearest);
  }
}

}  // namespace
}  // namespace octet::train

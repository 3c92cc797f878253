#include "passes/set_scales.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/verify.h"
#include "numerics/quantize.h"
#include "passes/block_builder.h"
#include "passes/place_fake_quant.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<float> scales(const ir::Graph& graph, const std::string& tensor) {
  return graph.find_value(tensor + "/scale")->constant->to_floats();
}

TEST(SetScalesTest, ActivationsFromRangesAndWeightsFromWeights) {
  BlockBuilder b;
  b.graph.add_output(b.conv(b.relu(b.conv(b.x, "conv1", 6, 3), "relu"), "conv2", 5));
  EXPECT_EQ(place_fake_quant(b.graph, {.unsigned_activations = true}), 4);
  ir::verify(b.graph);
  EXPECT_EQ(b.graph.find_node("input/fake_quantize")->get_string("state"), ir::kObserving);
  set_scales(b.graph, {{"input", {.amax = 2.54f}}, {"relu", {.amax = 5.1f}}});
  ir::verify(b.graph);
  EXPECT_EQ(b.graph.find_node("input/fake_quantize")->get_string("state"), ir::kFrozen);
  EXPECT_EQ(scales(b.graph, "input"), std::vector<float>{2.54f / 127});
  EXPECT_EQ(scales(b.graph, "relu"), std::vector<float>{5.1f / 255});
  const std::vector<float> w = b.graph.find_value("conv1.weight")->constant->to_floats();
  const std::vector<float> s = scales(b.graph, "conv1.weight");
  ASSERT_EQ(s.size(), 6u);
  for (size_t c = 0; c < 6; ++c) {
    float amax = 0;
    for (size_t i = 0; i < w.size() / 6; ++i) amax = std::max(amax, std::fabs(w[c * w.size() / 6 + i]));
    EXPECT_EQ(s[c], amax / 127) << c;
  }
}

TEST(SetScalesTest, AMissingRangeIsNamed) {
  BlockBuilder b;
  b.graph.add_output(b.conv(b.x, "conv1", 6));
  place_fake_quant(b.graph);
  EXPECT_THAT(
      [&] {
        set_scales(b.graph, {{"other", {.amax = 1}}});
      },
      ThrowsMessage<UserError>(HasSubstr("no range for tensor 'input'")));
}

TEST(SetScalesTest, ZeroTensorsAndDeadChannelsGetUsableScales) {
  BlockBuilder b;
  b.graph.add_output(b.conv(b.x, "conv1", 2));
  b.graph.find_value("conv1.weight")->constant =
      ir::Tensor::of<float>({2, 4, 1, 1}, std::vector<float>{0, 0, 0, 0, 1, -2, 0, 0});
  place_fake_quant(b.graph);
  set_scales(b.graph, {{"input", {.amax = 0}}});
  ir::verify(b.graph);
  EXPECT_EQ(scales(b.graph, "input"), std::vector<float>{1.0f});
  EXPECT_EQ(scales(b.graph, "conv1.weight"), (std::vector<float>{2.0f / 127 / 16384, 2.0f / 127}));
}

TEST(SetScalesTest, SharedScalesAreTheLargest) {
  BlockBuilder b;
  auto* a = b.relu(b.conv(b.x, "conv1", 2), "a");
  auto* c = b.relu(b.conv(b.x, "conv2", 2), "c");
  b.graph.add_output(b.conv(b.op(OpKind::kConcat, "concat", {a, c}, {{"axis", int64_t{1}}}), "conv3", 2));
  place_fake_quant(b.graph, {.unify_concat = true});
  ir::verify(b.graph);
  EXPECT_EQ(b.graph.find_node("a/fake_quantize")->input(1), b.graph.find_node("c/fake_quantize")->input(1));
  set_scales(b.graph, {{"input", {.amax = 9}}, {"a", {.amax = 1}}, {"c", {.amax = 3}}, {"concat", {.amax = 2}}});
  EXPECT_EQ(scales(b.graph, "concat"), std::vector<float>{3.0f / 127});
}

TEST(RefreshWeightScalesTest, FollowsTheWeightsByTheAveragingConstant) {
  BlockBuilder b;
  b.graph.add_output(b.conv(b.x, "conv1", 2));
  place_fake_quant(b.graph);
  const auto set_weights = [&](float v) {
    b.graph.find_value("conv1.weight")->constant = ir::Tensor::of<float>({2, 4, 1, 1}, std::vector<float>(8, v));
  };
  set_weights(1.27f);
  set_scales(b.graph, {{"input", {.amax = 1}}});
  const float old_scale = 1.27f / 127, new_scale = 2.54f / 127;
  set_weights(2.54f);
  refresh_weight_scales(b.graph, 0.0f);
  EXPECT_EQ(scales(b.graph, "conv1.weight"), (std::vector<float>{old_scale, old_scale}));
  refresh_weight_scales(b.graph, 0.25f);
  EXPECT_EQ(scales(b.graph, "conv1.weight")[0], 0.75f * old_scale + 0.25f * new_scale);
  refresh_weight_scales(b.graph);
  EXPECT_EQ(scales(b.graph, "conv1.weight")[1], new_scale);
  EXPECT_EQ(scales(b.graph, "input"), std::vector<float>{1.0f / 127});
}

}  // namespace
}  // namespace octet::passes

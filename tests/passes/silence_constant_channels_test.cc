#include "passes/silence_constant_channels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/evaluate_graph.h"
#include "passes/block_builder.h"
#include "passes/pipelines.h"

namespace octet::passes {
namespace {

// Of the normalization 'bn': scale and variance.
void set_statistics(ir::Graph& graph, std::vector<float> scale, std::vector<float> variance) {
  const ir::Node& bn = *graph.find_node("bn");
  const ir::Shape shape{static_cast<int64_t>(scale.size())};
  bn.input(1)->constant = ir::Tensor::of<float>(shape, scale);
  bn.input(4)->constant = ir::Tensor::of<float>(shape, variance);
}

std::vector<float> scales(const ir::Graph& graph) {
  return graph.find_node("bn")->input(1)->constant->to_floats();
}

TEST(SilenceConstantChannels, TakesThoseWhoseVarianceIsFarBelowEpsilon) {
  BlockBuilder b;
  b.graph.add_output(b.bn(b.conv(b.x, "conv", 4), "bn"));
  set_statistics(b.graph, {2, -3, 4, 0}, {0, 9e-10f, 2e-9f, 0});  // epsilon is 1e-5
  EXPECT_EQ(silence_constant_channels(b.graph), 2);
  EXPECT_EQ(scales(b.graph), (std::vector<float>{0, 0, 4, 0}));
  EXPECT_EQ(silence_constant_channels(b.graph), 0);
  ir::verify(b.graph);
}

TEST(SilenceConstantChannels, LeavesOtherNodesTheirConstants) {
  BlockBuilder b;
  ir::Value* y = b.bn(b.conv(b.x, "conv", 4), "bn");
  set_statistics(b.graph, {2, 3, 4, 5}, {0, 1, 1, 1});
  ir::Value* scale = b.graph.find_node("bn")->input(1);
  b.graph.add_output(y);
  b.graph.add_output(b.op(ir::OpKind::kAbs, "reader", {scale}));
  EXPECT_EQ(silence_constant_channels(b.graph), 1);
  EXPECT_EQ(scales(b.graph), (std::vector<float>{0, 3, 4, 5}));
  EXPECT_EQ(scale->constant->to_floats(), (std::vector<float>{2, 3, 4, 5}));
}

// A depthwise convolution of a constant that lies between two codes: what is left of it after rounding was multiplied
// by scale / sqrt(epsilon), and came out as a number of that size instead of the offset.
TEST(SilenceConstantChannels, WhatTheyGiveOutStaysTheOffset) {
  BlockBuilder b({1, 2, 8, 8});
  ir::Value* y =
      b.op(ir::OpKind::kConv, "conv", {b.x, b.parameter("conv.weight", {2, 1, 1, 1})}, {{"group", int64_t{2}}});
  b.graph.add_output(b.bn(y, "bn"));
  const float constant = 0.537f;
  const auto set = [&](ir::Value* value, const ir::Shape& shape, float first, float second) {
    value->constant = ir::Tensor::of<float>(shape, std::vector<float>{first, second});
  };
  set(b.graph.find_value("conv.weight"), {2, 1, 1, 1}, 1, 1);
  const ir::Node& bn = *b.graph.find_node("bn");
  set(bn.input(1), {2}, 1, 1);
  set(bn.input(2), {2}, 0.25f, 0);
  set(bn.input(3), {2}, constant, 0);
  set(bn.input(4), {2}, 0, 1);
  run_pipeline(b.graph, placement_passes({}));
  quant::CalibrationSet seen(b.graph);
  // Codes 1 apart: the constant is taken for 1.
  for (const std::string& name : seen.names()) seen.observe(name, std::vector<float>{-127, 127});
  run_pipeline(b.graph, scale_passes(seen.ranges(), {}));
  const ir::Tensor image = ir::Tensor::of<float>({1, 2, 8, 8}, std::vector<float>(128, constant));
  const std::vector<float> out = ir::evaluate_graph(b.graph, {image})[0].to_floats();
  for (size_t i = 0; i < 64; ++i) ASSERT_NEAR(out[i], 0.25f, 1e-3f);
}

}  // namespace
}  // namespace octet::passes

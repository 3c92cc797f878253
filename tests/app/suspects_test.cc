#include "app/suspects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octet::app {
namespace {

using ::testing::HasSubstr;

// conv(q(x), q(w)), with one scale for all weights or one for each channel.
ir::Graph network_with_weights(const std::vector<float>& weights, bool per_channel) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 1, 2, 2}});
  const auto channels = static_cast<int64_t>(weights.size());
  ir::Value* w = g.add_constant("w", ir::Tensor::of<float>({channels, 1, 1, 1}, weights));
  const auto quantized = [&](const std::string& name, ir::Value* value, int64_t scales) {
    const ir::Shape shape = scales == 1 ? ir::Shape{} : ir::Shape{scales};
    const auto n = static_cast<size_t>(scales);
    return g.add(ir::OpKind::kFakeQuantize, name,
                 {value, g.add_constant(name + "/scale", ir::Tensor::of<float>(shape, std::vector<float>(n, 0.1f))),
                  g.add_constant(name + "/zero", ir::Tensor::of<int8_t>(shape, std::vector<int8_t>(n, 0)))},
                 {{"qmin", int64_t{-128}}, {"qmax", int64_t{127}}, {"axis", int64_t{0}}});
  };
  g.add_output(
      g.add(ir::OpKind::kConv, "conv", {quantized("xq", x, 1), quantized("wq", w, per_channel ? channels : 1)}));
  return g;
}

TEST(Suspects, ChannelsOfDifferentRangesShareAScale) {
  EXPECT_THAT(advice(network_with_weights({0.01f, 1.0f}, false), {.quantizer = "wq", .own_db = 30}),
              ::testing::AllOf(HasSubstr("differ 100 times"), HasSubstr("quant.weights.granularity: channel")));
  EXPECT_THAT(advice(network_with_weights({0.01f, 1.0f}, true), {.quantizer = "wq", .own_db = 30}),
              HasSubstr("quant.gptq"));
  EXPECT_THAT(advice(network_with_weights({0.9f, 1.0f}, false), {.quantizer = "wq", .own_db = 30}),
              HasSubstr("quant.exclude: [\"conv\"]"));
}

TEST(Suspects, ActivationsThatAreClippedOrFillNoRange) {
  const ir::Graph g = network_with_weights({1, 1}, true);
  EXPECT_THAT(advice(g, {.quantizer = "xq", .own_db = 15, .clipped = 0.03}),
              ::testing::AllOf(HasSubstr("3 % of it is clipped"), HasSubstr("name: \"x\", method: max")));
  EXPECT_THAT(advice(g, {.quantizer = "xq", .own_db = 15}), HasSubstr("quant.equalize"));
  EXPECT_THAT(advice(g, {.quantizer = "xq", .own_db = 45}), HasSubstr("what reads it is sensitive"));
}

// Nothing equalizes channels across it.
TEST(Suspects, ActivationsBehindSwishWantAZeroPoint) {
  ir::Graph g = network_with_weights({1, 1}, true);
  ir::Node* quantizer = g.find_node("xq");
  g.set_input(quantizer, 0, g.add(ir::OpKind::kHardSwish, "swish", {g.find_value("x")}));
  EXPECT_THAT(advice(g, {.quantizer = "xq", .own_db = 15}),
              ::testing::AllOf(HasSubstr("quant.activations.asymmetric: yes"), Not(HasSubstr("quant.equalize"))));
  quantizer->attributes["qmin"] = int64_t{0};
  EXPECT_THAT(advice(g, {.quantizer = "xq", .own_db = 15}),
              ::testing::AllOf(HasSubstr("stage qat, or float: quant.exclude"), Not(HasSubstr("asymmetric"))));
}

TEST(Suspects, RangesOfChannels) {
  EXPECT_DOUBLE_EQ(channel_range_ratio(ir::Tensor::of<float>({2, 2}, {1, -4, 2, 0.5f}), 0), 2);
  EXPECT_DOUBLE_EQ(channel_range_ratio(ir::Tensor::of<float>({2, 2}, {1, -4, 2, 0.5f}), 1), 2);
  EXPECT_DOUBLE_EQ(channel_range_ratio(ir::Tensor::of<float>({2, 1}, {0, 3}), 0), 1);
  EXPECT_DOUBLE_EQ(channel_range_ratio(ir::Tensor::of<float>({3}, {1, 2, 3}), 1), 1);
}

}  // namespace
}  // namespace octet::app

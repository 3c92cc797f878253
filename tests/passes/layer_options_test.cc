// Settings of single layers (quant.layers): which tensors they reach, and what wins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/query.h"
#include "passes/block_builder.h"
#include "support/post_training.h"

namespace octet::passes {
namespace {

using quant::LayerOptions;
using quant::PlacementOptions;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::string plan_text(const ir::Graph& graph, const PlacementOptions& options) {
  return quant::placement_text(quant::plan_placement(graph, options));
}

LayerOptions bits(quant::NodeSelector nodes, int64_t activations, int64_t weights) {
  LayerOptions out{.nodes = std::move(nodes)};
  if (activations) out.any_activation_bits = false, out.activation_bits = activations;
  if (weights) out.any_weight_bits = false, out.weight_bits = weights;
  return out;
}

class Chain : public BlockBuilder {
 public:
  Chain() {
    auto* y = relu(conv(x, "stem", 4), "relu1");
    y = relu(conv(y, "body/a", 4), "relu2");
    y = relu(conv(y, "body/b", 4), "relu3");
    graph.add_output(conv(y, "head", 4));
    for (int i = 0; i < 3; ++i) images.push_back(ir::Tensor::of<float>({1, 4, 8, 8}, random(256)));
  }
  std::vector<ir::Tensor> images;
};

TEST(Layers, BitsAndGranularityOfWhatIsSelected) {
  Chain b;
  LayerOptions per_tensor{.nodes = {.regex = "body/b"}, .weights_per_tensor = true};
  const std::string text =
      plan_text(b.graph, {.layers = {bits({.name = "body/*"}, 4, 5), bits({.op = "Conv"}, 6, 0), per_tensor}});
  EXPECT_EQ(text,
            "input  s6 per tensor  -> Conv 'stem'\n"
            "stem.weight  s8 per channel (axis 0)  -> Conv 'stem'\n"
            "relu1  s4 per tensor  -> Conv 'body/a'\n"
            "body/a.weight  s5 per channel (axis 0)  -> Conv 'body/a'\n"
            "relu2  s4 per tensor  -> Conv 'body/b'\n"
            "body/b.weight  s5 per tensor  -> Conv 'body/b'\n"
            "relu3  s6 per tensor  -> Conv 'head'\n"
            "head.weight  s8 per channel (axis 0)  -> Conv 'head'\n");
}

TEST(Layers, TheFirstEntryCountsAndOuterBitsDoNot) {
  Chain b;
  const quant::PlacementOptions options{
      .layers = {bits({.name = "stem"}, 3, 0), bits({.op = "Conv"}, 7, 7)}, .activation_bits = 4, .outer_bits = 8};
  const std::string text = plan_text(b.graph, options);
  EXPECT_THAT(text, HasSubstr("input  s3 "));
  EXPECT_THAT(text, HasSubstr("stem.weight  s7 "));
  EXPECT_THAT(text, HasSubstr("relu3  s7 "));
}

TEST(Layers, ATensorOfSeveralReadersGoesByTheFirstEntryOfAny) {
  BlockBuilder b;
  auto* x = b.relu(b.x, "relu");
  b.graph.add_output(b.conv(x, "one", 4));
  b.graph.add_output(b.conv(x, "two", 4));
  EXPECT_THAT(plan_text(b.graph, {.layers = {bits({.name = "two"}, 5, 0), bits({.name = "one"}, 3, 0)}}),
              HasSubstr("relu  s5 per tensor  -> Conv 'one', Conv 'two'"));
}

TEST(Layers, AsymmetricAlone) {
  Chain b;
  const LayerOptions yes{.nodes = {.name = "head"}, .asymmetric = true},
      no{.nodes = {.name = "stem"}, .asymmetric = false};
  const std::string one = plan_text(b.graph, {.layers = {yes}});
  EXPECT_THAT(one, HasSubstr("relu3  s8 per tensor asymmetric  -> Conv 'head'"));
  EXPECT_THAT(one, HasSubstr("relu2  s8 per tensor  -> "));
  const std::string all_but_one = plan_text(b.graph, {.layers = {no}, .asymmetric_activations = true});
  EXPECT_THAT(all_but_one, HasSubstr("input  s8 per tensor  -> "));
  EXPECT_THAT(all_but_one, HasSubstr("relu1  s8 per tensor asymmetric  -> "));
}

TEST(Layers, CalibrationOfWhatTheyRead) {
  Chain b;
  quant::QuantOptions options;
  options.calibration.method = quant::CalibrationMethod::kMax;
  const ir::Graph all = testing::calibrated(b.graph, options, b.images);
  options.placement.layers = {{.nodes = {.chain = "Conv > Relu > Conv"}, .any_percentile = false, .percentile = 90},
                              {.nodes = {.name = "body/b"}, .method = quant::CalibrationMethod::kPercentile},
                              bits({.name = "head"}, 0, 2)};
  const ir::Graph some = testing::calibrated(b.graph, options, b.images);
  const auto scales = [](const ir::Graph& graph, const std::string& tensor) {
    return graph.find_node(tensor + "/fake_quantize")->input(1)->constant->to_floats();
  };
  EXPECT_EQ(scales(some, "relu1"), scales(all, "relu1")) << "max has no percentile";
  EXPECT_LT(scales(some, "relu2")[0], 0.9f * scales(all, "relu2")[0]);
  EXPECT_EQ(scales(some, "relu3"), scales(all, "relu3"));
  options.placement.layers.push_back({.nodes = {.name = "head"}, .weight_method = quant::WeightMethod::kMse});
  EXPECT_NE(scales(testing::calibrated(b.graph, options, b.images), "head.weight"), scales(some, "head.weight"));
  EXPECT_EQ(scales(some, "body/b.weight"), scales(all, "body/b.weight"));
  // quant.calibration.tensors names the tensor itself, and so counts more.
  options.calibration.tensors = {{.name = "relu2", .method = quant::CalibrationMethod::kMax}};
  EXPECT_EQ(scales(testing::calibrated(b.graph, options, b.images), "relu2"), scales(all, "relu2"));
}

TEST(Layers, CalibrationOfAnOutput) {
  BlockBuilder b;
  auto* y = b.conv(b.x, "first", 4);
  b.graph.add_output(y);
  b.graph.add_output(b.conv(y, "second", 4));
  quant::QuantOptions options;
  options.placement.rules = {quant::PlacementRule::kDla};
  const std::vector<ir::Tensor> images = {ir::Tensor::of<float>({1, 4, 8, 8}, b.random(256))};
  const auto scale = [&] {
    const ir::Graph graph = testing::calibrated(b.graph, options, images);
    return ir::scalar(graph.find_node("first/fake_quantize")->input(1)).value();
  };
  const float before = scale();
  options.placement.layers = {{.nodes = {.name = "second"},
                               .method = quant::CalibrationMethod::kPercentile,
                               .any_percentile = false,
                               .percentile = 50}};
  EXPECT_LT(scale(), before);
}

TEST(Layers, WhatMeansNothingIsAnError) {
  Chain b;
  EXPECT_THAT(
      [&] { plan_text(b.graph, {.layers = {bits({.name = "body/x"}, 4, 0)}}); },
      ThrowsMessage<UserError>(HasSubstr("quantization layers: no node of graph 'block' is named 'body/x'; did you "
                                         "mean 'body/a'?")));
  EXPECT_THAT([&] { plan_text(b.graph, {.exclude = {{.name = "head"}}, .layers = {bits({.name = "head"}, 4, 0)}}); },
              ThrowsMessage<UserError>(HasSubstr("nothing that 'head' selects reads anything quantized")));
}

}  // namespace
}  // namespace octet::passes

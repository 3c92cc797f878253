// What options change in a network of the zoo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/summary.h"
#include "models/tested_models.h"

namespace octet::models {
namespace {

using ::testing::HasSubstr;

TEST(OptionsTest, WithoutNormalizationConvolutionsHaveABias) {
  const ir::Graph graph =
      build_model({.arch = "resnet18", .input = {3, 32, 32}, .draw_weights = false, .use_batch_norm = false});
  EXPECT_EQ(count(graph, ir::OpKind::kBatchNormalization), 0);
  for (const auto& node : graph.nodes())
    if (node->kind == ir::OpKind::kConv) {
      EXPECT_EQ(node->inputs.size(), 3u) << node->name;
    }
  // torchvision's vgg19_bn.
  const ir::Graph vgg = build_model({.arch = "vgg19", .draw_weights = false, .use_batch_norm = true});
  EXPECT_EQ(ir::summarize(vgg).parameters, 143678248);
}

TEST(OptionsTest, NormalizationsTakeTheEpsilonThatIsAskedFor) {
  const auto epsilons = [](const ModelOptions& options) {
    std::set<float> out;
    const ir::Graph graph = build_model(options);
    for (const auto& node : graph.nodes())
      if (node->kind == ir::OpKind::kBatchNormalization) out.insert(node->get_float("epsilon"));
    return out;
  };
  ModelOptions options{.arch = "efficientnet_b0", .input = {3, 32, 32}, .draw_weights = false};
  EXPECT_EQ(epsilons(options), std::set{1e-5f});
  options.batch_norm_epsilon = 1e-3;
  EXPECT_EQ(epsilons(options), std::set{1e-3f});
  EXPECT_TRUE(unused_options(options).empty());
  options.arch = "resnet18", options.layout = Layout::kTao, options.batch_norm_epsilon = 1e-4;
  EXPECT_EQ(epsilons(options), std::set{1e-4f});
  for (const char* arch : {"vgg16", "vit_tiny"})
    EXPECT_THAT(unused_options({.arch = arch, .batch_norm_epsilon = 1e-3}),
                ::testing::ElementsAre(HasSubstr("model.batch_norm_epsilon is not used")))
        << arch;
}

TEST(OptionsTest, StridesReplacePools) {
  const auto built = [](const char* arch, bool use_pooling) {
    return build_backbone({.arch = arch, .input = {3, 64, 64}, .draw_weights = false, .use_pooling = use_pooling});
  };
  EXPECT_EQ(count(built("resnet18", true).graph, ir::OpKind::kMaxPool), 1);
  const Backbone resnet = built("resnet18", false);
  EXPECT_EQ(count(resnet.graph, ir::OpKind::kMaxPool), 0);
  EXPECT_EQ(resnet.levels.back().stride, 32);
  EXPECT_EQ(resnet.graph.find_node("layer1.0.conv1")->get_ints("strides"), (std::vector<int64_t>{2, 2}));
  const Backbone vgg = built("vgg16", false);
  EXPECT_EQ(count(vgg.graph, ir::OpKind::kMaxPool), 0);
  EXPECT_EQ(vgg.levels.back().stride, 16);
  EXPECT_EQ(vgg.graph.find_node("features.5")->get_ints("strides"), (std::vector<int64_t>{2, 2}));
}

TEST(OptionsTest, EveryShortcutCanBeAProjection) {
  const auto projections = [](const char* arch, bool all) {
    const Backbone backbone =
        build_backbone({.arch = arch, .input = {3, 64, 64}, .draw_weights = false, .all_projections = all});
    return std::count_if(backbone.graph.nodes().begin(), backbone.graph.nodes().end(),
                         [](const auto& n) { return n->name.ends_with(".downsample.0"); });
  };
  EXPECT_EQ(projections("resnet18", false), 3);
  EXPECT_EQ(projections("resnet18", true), 8);
  EXPECT_EQ(projections("resnet20", true), 9);
  const Backbone v2 =
      build_backbone({.arch = "resnet50_v2", .input = {3, 64, 64}, .draw_weights = false, .all_projections = true});
  EXPECT_EQ(count(v2.graph, ir::OpKind::kConv), 1 + 16 * 4);
  EXPECT_EQ(count(v2.graph, ir::OpKind::kMaxPool), 1);
}

TEST(OptionsTest, TheActivationIsExchanged) {
  const ir::Graph graph =
      build_model({.arch = "mobilenet_v2", .input = {3, 32, 32}, .activation = Activation::kLeakyRelu});
  EXPECT_EQ(count(graph, ir::OpKind::kClip), 0);
  EXPECT_EQ(count(graph, ir::OpKind::kLeakyRelu), 35);
  // Gates stay.
  EXPECT_EQ(count(build_model({.arch = "efficientnet_b0", .input = {3, 32, 32}, .activation = Activation::kRelu}),
                  ir::OpKind::kSigmoid),
            16);
}

TEST(OptionsTest, WhatIsOfNoUseIsSaid) {
  EXPECT_THAT(unused_options({.arch = "mobilenet_v1", .use_pooling = true, .all_projections = true}),
              ::testing::ElementsAre(HasSubstr("model.use_pooling is not used: mobilenet_v1 has no pools"),
                                     HasSubstr("model.all_projections is not used: mobilenet_v1 has no shortcuts")));
  EXPECT_THAT(unused_options({.arch = "resnet18", .use_pooling = true, .all_projections = true}), ::testing::IsEmpty());
  EXPECT_THAT(unused_options({.arch = "resnet50_v2", .use_pooling = true, .all_projections = true}),
              ::testing::ElementsAre(HasSubstr("model.use_pooling is not used: resnet50_v2 has no pools")));
}
}  // namespace
}  // namespace octet::models

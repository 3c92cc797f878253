#include "models/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/files.h"
#include "ir/infer.h"
#include "ir/summary.h"
#include "ir/verify.h"
#include "models/initialize.h"
#include "support/sanitized.h"

namespace octet::models {
namespace {

using ::testing::HasSubstr;

class EveryModel : public ::testing::TestWithParam<ModelInfo> {};

TEST_P(EveryModel, HasThePublishedParametersAndMacs) {
  const ModelInfo& info = GetParam();
  const ir::Graph graph = build_model(default_options(info.name));
  ir::verify(graph);
  ir::check_finite_constants(graph);
  const ir::GraphSummary summary = ir::summarize(graph);
  EXPECT_EQ(summary.parameters, info.parameters);
  ASSERT_TRUE(summary.macs.has_value());
  // Half a unit of the last published digit: of 10^7 (VGG), 10^6, or 10^4 (the small networks) MACs.
  const double unit = info.gmacs > 10 ? 1e-2 : info.gmacs > 0.2 ? 1e-3 : 1e-5;
  EXPECT_NEAR(static_cast<double>(*summary.macs) / 1e9, info.gmacs, 0.5 * unit);
  int64_t trainable = 0;
  for (const ir::Value* v : graph.constants())
    if (v->trainable) trainable += v->constant->size();
  EXPECT_EQ(trainable, info.parameters);
  EXPECT_EQ(ir::type_string(graph.inputs().at(0)->type),
            "float32[?, 3, " + std::to_string(info.input[1]) + ", " + std::to_string(info.input[2]) + "]");
  EXPECT_EQ(graph.outputs().at(0)->name, "logits");
  EXPECT_EQ(graph.outputs().at(0)->type.shape, (ir::Shape{ir::kDynamic, info.num_classes}));
}

TEST_P(EveryModel, TakesOtherInputsAndClassCounts) {
  const std::string& name = GetParam().name;  // VGG and its like halve five times without padding
  const bool whole = name.starts_with("vgg") || name == "darknet19" || name == "squeezenet" || name == "googlenet" ||
                     name == "densenet121" || name == "convnext_tiny";
  const int64_t side = name == "inception_v3" ? 75 : whole ? 32 : 28;
  ir::Graph graph = build_model({.arch = GetParam().name, .num_classes = 7, .input = {1, side, side}});
  ir::verify(graph);
  ir::set_batch(graph, 5);
  EXPECT_EQ(graph.outputs().at(0)->type.shape, (ir::Shape{5, 7}));
}

TEST_P(EveryModel, HasFeatureLevels) {
  Backbone backbone = build_backbone({.arch = GetParam().name, .input = {3, 64, 96}});
  int64_t stride = 0;
  for (const FeatureLevel& level : backbone.levels) {
    EXPECT_TRUE(stride == 0 || level.stride == 2 * stride) << level.stride << " after " << stride;
    stride = level.stride;
    EXPECT_EQ(level.value->type.shape->at(2), 64 / stride);
    EXPECT_EQ(level.value->type.shape->at(3), 96 / stride);
    EXPECT_EQ(backbone.level(stride), level.value);
    backbone.graph.add_output(level.value);
  }
  EXPECT_GE(backbone.levels.size(), GetParam().name.starts_with("vit") ? 1u : 3u);
  ir::verify(backbone.graph);
  EXPECT_EQ(backbone.graph.remove_dead(), 0) << "something is no part of any level";
  // With the same weights as the whole network.
  const int64_t height = GetParam().name == "inception_v3" ? 96 : 64;  // the classifier pads less
  const ir::Graph whole = build_model({.arch = GetParam().name, .input = {3, height, 96}});
  for (const ir::Value* v : backbone.graph.constants()) {
    if (v->type.data_type != ir::DataType::kFloat32) continue;  // shapes
    ASSERT_NE(whole.find_value(v->name), nullptr) << v->name;
    EXPECT_EQ(hash64(v->constant->bytes()), hash64(whole.find_value(v->name)->constant->bytes())) << v->name;
  }
  EXPECT_THAT([&] { backbone.level(3); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("no features of stride 3; it has ")));
}

// TAO's templates: names, normalization, and a level of stride 16 that is the last where TAO's detector ends there.
class EveryTaoModel : public ::testing::TestWithParam<ModelInfo> {};

TEST_P(EveryTaoModel, IsATemplateOfTao) {
  const ModelOptions options = {
      .arch = GetParam().name, .num_classes = 5, .input = {3, 64, 96}, .layout = Layout::kTao, .use_batch_norm = true};
  Backbone backbone = build_backbone(options);
  for (const FeatureLevel& level : backbone.levels) {
    EXPECT_EQ(level.value->type.shape->at(2), 64 / level.stride);
    EXPECT_EQ(level.value->type.shape->at(3), 96 / level.stride);
    backbone.graph.add_output(level.value);
  }
  EXPECT_NE(backbone.level(16), nullptr);
  ir::verify(backbone.graph);
  EXPECT_EQ(backbone.graph.remove_dead(), 0) << "something is no part of any level";
  for (const auto& node : backbone.graph.nodes()) {
    EXPECT_TRUE(backbone.blocks.contains(node->name)) << node->name;
    if (node->kind == ir::OpKind::kBatchNormalization) {
      EXPECT_EQ(node->get_float("epsilon"), 1e-3f) << node->name;
    }
  }
  const ir::Graph whole = build_model(options);
  ir::verify(whole);
  EXPECT_EQ(whole.outputs().at(0)->type.shape, (ir::Shape{ir::kDynamic, 5}));
  for (const ir::Value* v : backbone.graph.constants()) EXPECT_NE(whole.find_value(v->name), nullptr) << v->name;
}

// Sanitizers make large networks slow, and these have nothing that others do not have.
std::vector<ModelInfo> tested_models() {
  std::vector<ModelInfo> out = all_models();
  if (testing::kSanitized) std::erase_if(out, [](const ModelInfo& info) { return info.parameters > 30'000'000; });
  return out;
}

std::vector<ModelInfo> tao_models() {
  std::vector<ModelInfo> out = tested_models();
  std::erase_if(out, [](const ModelInfo& info) { return !has_tao_layout(info.name); });
  return out;
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryTaoModel, ::testing::ValuesIn(tao_models()),
                         [](const auto& info) { return info.param.name; });

TEST(TaoLayoutTest, HasTheNamesOfItsTemplates) {
  const std::pair<const char*, std::vector<const char*>> expected[] = {
      {"resnet18",
       {"conv1.bias", "bn_conv1.weight", "block_1a_conv_1.bias", "block_1a_bn_2.running_var",
        "block_1a_conv_shortcut.weight", "block_1a_bn_shortcut.bias", "block_1b_conv_2.weight",
        "block_4b_bn_2.weight"}},
      {"resnet50", {"block_1c_conv_3.weight", "block_3f_bn_3.weight", "block_4a_bn_shortcut.running_mean"}},
      {"vgg16", {"block_1a_conv_1.weight", "block_1b_bn_1.weight", "block_5c_conv_1.bias"}},
      {"vgg19", {"block_3d_conv_1.weight", "block_5d_bn_1.running_mean"}},
      {"darknet19", {"conv1.weight", "conv1_bn.bias", "b1_conv1.weight", "b5_conv5_bn.running_var"}},
      {"darknet53",
       {"conv2.weight", "b1_conv1_1.weight", "b3_conv8_2_bn.weight", "conv6_bn.weight", "b5_conv4_2.weight"}},
      {"mobilenet_v1",
       {"conv1.weight", "conv1_bn.weight", "conv_dw_1.weight", "conv_dw_11_bn.bias", "conv_pw_13.weight"}},
      {"mobilenet_v2",
       {"conv1.weight", "bn_conv1.weight", "expanded_conv_depthwise.weight", "expanded_conv_project_bn.bias",
        "block_1_expand.weight", "block_12_project_bn.running_var", "block_16_depthwise_bn.weight",
        "conv_1_bn.weight"}},
      {"squeezenet",
       {"conv1.bias", "fire2_squeeze_conv.weight", "fire9_expand_conv3x3.bias", "fire9_expand_conv1x1.weight"}},
      {"googlenet",
       {"conv1.bias", "bn_conv1.weight", "conv2_reduce.weight", "bn_conv2.bias", "inception_3a_1x1.weight",
        "inception_3a_3x3_reduce_bn.weight", "inception_5b_5x5.bias", "inception_5b_pool_proj_bn.running_mean"}},
      {"efficientnet_b0",
       {"stem_conv.weight", "stem_bn.weight", "block1a_dwconv.weight", "block1a_bn.bias", "block1a_se_reduce.bias",
        "block2b_expand_conv.weight", "block7a_project_bn.running_var", "top_conv.weight", "top_bn.weight"}},
  };
  for (const auto& [arch, names] : expected) {
    const Backbone backbone = build_backbone({.arch = arch,
                                              .input = {3, 32, 32},
                                              .layout = Layout::kTao,
                                              .use_batch_norm = std::string(arch) != "squeezenet"});
    for (const char* name : names) EXPECT_NE(backbone.graph.find_value(name), nullptr) << arch << " " << name;
  }
}

int64_t parameters(const ModelOptions& options) {
  const Backbone backbone = build_backbone(options);
  int64_t count = 0;
  for (const ir::Value* v : backbone.graph.constants())
    if (v->name.find('.') != std::string::npos) count += v->constant->size();
  return count;
}

// A residual block has two 3x3 convolutions with bias, and normalizations of four vectors.
int64_t tao_resnet18(bool all_projections) {
  const auto layer = [](int64_t in, int64_t out, int64_t kernel) { return in * out * kernel * kernel + out + 4 * out; };
  int64_t count = layer(3, 64, 7), in = 64;
  for (const int64_t out : {64, 128, 256, 512}) {
    count += layer(in, out, 3) + layer(out, out, 3) + layer(in, out, 1);
    count += layer(out, out, 3) + layer(out, out, 3) + (all_projections ? layer(out, out, 1) : 0);
    in = out;
  }
  return count;
}

TEST(TaoLayoutTest, ResnetsCountAsTaos) {
  ModelOptions options = {.arch = "resnet18", .input = {3, 64, 64}, .layout = Layout::kTao};
  EXPECT_EQ(parameters(options), tao_resnet18(false));
  options.all_projections = true;
  EXPECT_EQ(parameters(options), tao_resnet18(true));
}

TEST(TaoLayoutTest, ResnetsEndAtStrideSixteenWithoutPools) {
  const auto strides = [](std::optional<bool> use_pooling) {
    std::vector<int64_t> out;
    const Backbone backbone =
        build_backbone({.arch = "resnet18", .input = {3, 64, 64}, .layout = Layout::kTao, .use_pooling = use_pooling});
    for (const FeatureLevel& level : backbone.levels) out.push_back(level.stride);
    return out;
  };
  EXPECT_EQ(strides({}), (std::vector<int64_t>{4, 8, 16}));
  EXPECT_EQ(strides(true), (std::vector<int64_t>{4, 8, 16, 32}));
  const Backbone backbone = build_backbone({.arch = "resnet50", .input = {3, 64, 64}, .layout = Layout::kTao});
  EXPECT_EQ(backbone.level(16)->name, "block_4c_relu");
  EXPECT_EQ(backbone.level(16)->type.shape->at(1), 2048);
  const auto stride = [&](const char* name) { return backbone.graph.find_node(name)->get_ints("strides").at(0); };
  EXPECT_EQ(stride("block_1a_conv_1"), 2);
  EXPECT_EQ(stride("block_1a_conv_2"), 1);
  EXPECT_EQ(stride("block_1b_conv_1"), 1);
  EXPECT_EQ(stride("block_4a_conv_1"), 1);
}

TEST(TaoLayoutTest, BlocksAreThoseOfTao) {
  const auto block = [](const char* arch, const char* node) {
    return build_backbone({.arch = arch, .input = {3, 32, 32}, .layout = Layout::kTao}).blocks.at(node);
  };
  EXPECT_EQ(block("resnet10", "bn_conv1"), 0);
  EXPECT_EQ(block("resnet10", "block_3a_conv_shortcut"), 3);
  EXPECT_EQ(block("vgg16", "block_1a_conv_1"), 1);
  EXPECT_EQ(block("vgg16", "block_5c_conv_1"), 5);
  EXPECT_EQ(block("mobilenet_v1", "conv_pw_13"), 13);
  EXPECT_EQ(block("mobilenet_v2", "expanded_conv_project"), 1);
  EXPECT_EQ(block("mobilenet_v2", "block_12_expand"), 13);
  EXPECT_EQ(block("squeezenet", "fire2_squeeze_conv"), 1);
  EXPECT_EQ(block("squeezenet", "fire9_expand_conv3x3"), 8);
  EXPECT_EQ(block("googlenet", "conv2"), 0);
  EXPECT_EQ(block("googlenet", "inception_5b_1x1"), 9);
  EXPECT_EQ(block("darknet53", "conv6"), 5);
  EXPECT_EQ(block("efficientnet_b0", "block7a_se_expand"), 7);
  EXPECT_EQ(block("efficientnet_b0", "top_conv"), 8);
}

TEST(TaoLayoutTest, IsRefusedForNetworksThatTaoDoesNotHave) {
  for (const char* arch : {"resnet20", "resnet50_v2", "mobilenet_v3_small", "efficientnet_b3", "inception_v3"})
    EXPECT_THAT([&] { build_model({.arch = arch, .layout = Layout::kTao}); },
                ::testing::ThrowsMessage<UserError>(HasSubstr(str("NVIDIA TAO has no ", arch))));
}

int64_t count(const ir::Graph& graph, ir::OpKind kind) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const auto& n) { return n->kind == kind; });
}

TEST(OptionsTest, WithoutNormalizationConvolutionsHaveABias) {
  const ir::Graph graph = build_model({.arch = "resnet18", .input = {3, 32, 32}, .use_batch_norm = false});
  EXPECT_EQ(count(graph, ir::OpKind::kBatchNormalization), 0);
  for (const auto& node : graph.nodes())
    if (node->kind == ir::OpKind::kConv) {
      EXPECT_EQ(node->inputs.size(), 3u) << node->name;
    }
  // torchvision's vgg19_bn.
  const ir::Graph vgg = build_model({.arch = "vgg19", .use_batch_norm = true});
  EXPECT_EQ(ir::summarize(vgg).parameters, 143678248);
}

TEST(OptionsTest, StridesReplacePools) {
  const auto built = [](const char* arch, bool use_pooling) {
    return build_backbone({.arch = arch, .input = {3, 64, 64}, .use_pooling = use_pooling});
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
    const Backbone backbone = build_backbone({.arch = arch, .input = {3, 64, 64}, .all_projections = all});
    return std::count_if(backbone.graph.nodes().begin(), backbone.graph.nodes().end(),
                         [](const auto& n) { return n->name.ends_with(".downsample.0"); });
  };
  EXPECT_EQ(projections("resnet18", false), 3);
  EXPECT_EQ(projections("resnet18", true), 8);
  EXPECT_EQ(projections("resnet20", true), 9);
  const Backbone v2 = build_backbone({.arch = "resnet50_v2", .input = {3, 64, 64}, .all_projections = true});
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

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, ::testing::ValuesIn(tested_models()),
                         [](const auto& info) { return info.param.name; });

TEST(VggTest, NeedsThirtyTwoPixels) {
  EXPECT_THAT(
      [] {
        build_model({.arch = "vgg16_bn", .input = {3, 28, 40}});
      },
      ::testing::ThrowsMessage<UserError>(HasSubstr("at least 32x32 pixels, not 28x40")));
  const ir::Graph graph = build_model({.arch = "vgg16_bn", .num_classes = 10, .input = {3, 32, 32}});
  EXPECT_EQ(graph.find_value("classifier.0.weight")->type.shape, (ir::Shape{4096, 512}));
}

TEST(InceptionTest, NeedsSeventyFivePixelsUnderItsClassifier) {
  EXPECT_THAT(
      [] {
        build_model({.arch = "inception_v3", .input = {3, 75, 74}});
      },
      ::testing::ThrowsMessage<UserError>(HasSubstr("at least 75x75 pixels, not 75x74")));
  const Backbone backbone = build_backbone({.arch = "inception_v3", .input = {3, 32, 32}});
  EXPECT_EQ(backbone.level(32)->type.shape, (ir::Shape{ir::kDynamic, 2048, 1, 1}));
}

uint64_t fingerprint(const ir::Graph& graph) {
  uint64_t hash = 0;
  for (const ir::Value* v : graph.constants()) hash = hash64(v->constant->bytes(), hash64(v->name, hash));
  return hash;
}

TEST(ZooTest, TheSeedDecidesTheWeights) {
  const auto built = [](uint64_t seed) { return fingerprint(build_model({.arch = "resnet20", .seed = seed})); };
  EXPECT_EQ(built(3), built(3));
  EXPECT_NE(built(3), built(4));
}

// Initial weights are part of what a seed means: a change here changes every recorded training run.
TEST(ZooTest, InitialWeightsStayTheSameBits) {
  EXPECT_EQ(hex64(fingerprint(build_model(default_options("resnet20")))), "6c7dcad77b6f8d3d");
  EXPECT_EQ(hex64(fingerprint(build_model(default_options("efficientnet_b0")))), "81dd8bfa00abb8bb");
}

struct Moments {
  double mean, deviation;
};

Moments moments(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float v : values) sum += v, squares += static_cast<double>(v) * v;
  const auto n = static_cast<double>(values.size());
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n))};
}

TEST(InitializeTest, NormalValuesAreNormal) {
  constexpr int64_t kCount = 400000;
  const std::vector<float> v = normal_values(kCount, 0.5, 9, "w");
  const Moments m = moments(v);
  // Five standard errors of mean and deviation.
  EXPECT_NEAR(m.mean, 0, 5 * 0.5 / std::sqrt(kCount));
  EXPECT_NEAR(m.deviation, 0.5, 5 * 0.5 / std::sqrt(2.0 * kCount));
  for (const auto& [multiple, share] : {std::pair(1.0, 0.682689), {2.0, 0.954500}, {3.0, 0.997300}}) {
    const double bound = multiple;  // a captured structured binding is beyond clang before 16
    const auto inside = std::count_if(v.begin(), v.end(), [&](float x) { return std::fabs(x) < 0.5 * bound; });
    EXPECT_NEAR(static_cast<double>(inside) / kCount, share, 5 * std::sqrt(share * (1 - share) / kCount)) << bound;
  }
}

TEST(InitializeTest, StreamsDependOnSeedAndName) {
  EXPECT_NE(normal_values(3, 1, 1, "a"), normal_values(3, 1, 1, "b"));
  EXPECT_NE(normal_values(3, 1, 1, "a"), normal_values(3, 1, 2, "a"));
  // An odd count is a prefix of a longer one.
  const std::vector<float> three = normal_values(3, 1, 1, "a"), four = normal_values(4, 1, 1, "a");
  EXPECT_TRUE(std::equal(three.begin(), three.end(), four.begin()));
}

TEST(ZooTest, WeightsStartAsTheFieldStartsThem) {
  const ir::Graph graph = build_model(default_options("resnet18"));
  const auto values = [&](const char* name) { return graph.find_value(name)->constant->values<float>(); };
  const double expected = std::sqrt(2.0 / (512 * 9));
  EXPECT_NEAR(moments(values("layer4.1.conv2.weight")).deviation, expected, 0.005 * expected);
  for (const float v : values("layer1.0.bn1.weight")) EXPECT_EQ(v, 1);
  for (const float v : values("layer1.0.bn1.bias")) EXPECT_EQ(v, 0);
  for (const float v : values("layer1.0.bn1.running_var")) EXPECT_EQ(v, 1);
  EXPECT_FALSE(graph.find_value("layer1.0.bn1.running_mean")->trainable);
  EXPECT_TRUE(graph.find_value("layer1.0.bn1.bias")->trainable);
  const double bound = 1 / std::sqrt(512.0);
  for (const float v : values("fc.weight")) ASSERT_LE(std::fabs(v), bound);
  EXPECT_NEAR(moments(values("fc.weight")).deviation, bound / std::sqrt(3.0), 0.01 * bound);
}

TEST(ZooTest, ZeroInitResidualStartsTheBranchesAtZero) {
  const ir::Graph graph = build_model({.arch = "resnet50", .input = {3, 32, 32}, .zero_init_residual = true});
  for (const float v : graph.find_value("layer2.1.bn3.weight")->constant->values<float>()) EXPECT_EQ(v, 0);
  for (const float v : graph.find_value("layer2.1.bn2.weight")->constant->values<float>()) EXPECT_EQ(v, 1);
  for (const float v : graph.find_value("layer2.0.downsample.1.weight")->constant->values<float>()) EXPECT_EQ(v, 1);
}

TEST(ZooTest, VersionOneFiveStridesInTheThreeByThree) {
  const ir::Graph graph = build_model(default_options("resnet50"));
  const auto strides = [&](const char* name) { return graph.find_node(name)->get_ints("strides"); };
  EXPECT_EQ(strides("layer2.0.conv1"), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(strides("layer2.0.conv2"), (std::vector<int64_t>{2, 2}));
}

TEST(ZooTest, PreActivationStridesInTheLastBlockOfAStage) {
  const ir::Graph graph = build_model(default_options("resnet50_v2"));
  const auto strides = [&](const char* name) { return graph.find_node(name)->get_ints("strides").at(0); };
  EXPECT_EQ(strides("conv2_block1_0_conv"), 1);
  EXPECT_EQ(strides("conv2_block2_2_conv"), 1);
  EXPECT_EQ(strides("conv2_block3_2_conv"), 2);
  EXPECT_EQ(strides("conv2_block3_0_pool"), 2);
  EXPECT_EQ(strides("conv4_block6_2_conv"), 2);
  EXPECT_EQ(strides("conv5_block3_2_conv"), 1);
  EXPECT_EQ(graph.find_node("conv5_block3_0_pool"), nullptr);
  EXPECT_EQ(graph.find_node("conv2_block1_0_conv")->input(0)->name, "conv2_block1_preact_relu");
  EXPECT_EQ(graph.find_node("conv2_block2_out")->input(0)->name, "conv2_block1_out");
  EXPECT_EQ(graph.find_node("conv2_block2_1_conv")->inputs.size(), 2u) << "no bias before a normalization";
  EXPECT_EQ(graph.find_node("post_bn")->get_float("epsilon"), 1.001e-5f);
  EXPECT_EQ(graph.find_node("post_bn")->get_float("momentum"), 0.99f);
  const auto start = build_model({.arch = "resnet50_v2", .input = {3, 32, 32}, .zero_init_residual = true});
  for (const float v : start.find_value("conv3_block2_3_conv.weight")->constant->values<float>()) ASSERT_EQ(v, 0);
}

TEST(ZooTest, MobileNetV3HasTheHardFunctionsOfTorchvision) {
  const ir::Graph large = build_model(default_options("mobilenet_v3_large"));
  EXPECT_EQ(count(large, ir::OpKind::kHardSwish), 1 + 2 * 9 + 1 + 1);
  EXPECT_EQ(count(large, ir::OpKind::kRelu), 11 + 8);  // of six blocks and of eight gates
  EXPECT_EQ(count(large, ir::OpKind::kHardSigmoid), 8);
  EXPECT_EQ(large.find_node("features.4.block.2.scale_activation")->get_float("alpha"), 1.0f / 6);
  EXPECT_EQ(large.find_value("features.4.block.2.fc1.weight")->type.shape, (ir::Shape{24, 72, 1, 1}));
  EXPECT_EQ(large.find_node("features.0.1")->get_float("epsilon"), 1e-3f);
  EXPECT_EQ(large.find_node("features.0.1")->get_float("momentum"), 0.99f);
}

TEST(ZooTest, InceptionHasKernelsThatAreNotSquare) {
  const ir::Graph graph = build_model(default_options("inception_v3"));
  const ir::Node* wide = graph.find_node("Mixed_6b.branch7x7_2.conv");
  EXPECT_EQ(wide->input(1)->type.shape, (ir::Shape{128, 128, 1, 7}));
  EXPECT_EQ(wide->get_ints("kernel_shape"), (std::vector<int64_t>{1, 7}));
  EXPECT_EQ(wide->get_ints("pads"), (std::vector<int64_t>{0, 3, 0, 3}));
  EXPECT_EQ(graph.find_node("Mixed_5b.pool")->get_int("count_include_pad"), 1);
  EXPECT_EQ(graph.find_node("Conv2d_1a_3x3.bn")->get_float("epsilon"), 1e-3f);
  EXPECT_EQ(graph.find_value("Mixed_7c.concat")->type.shape, (ir::Shape{ir::kDynamic, 2048, 8, 8}));
}

// State dictionaries of torchvision and ONNX files made from its networks have these names.
TEST(ZooTest, ParametersHaveTorchvisionsNames) {
  const std::pair<const char*, std::vector<const char*>> expected[] = {
      {"resnet50",
       {"conv1.weight", "bn1.running_var", "layer1.0.conv3.weight", "layer4.2.bn3.bias", "layer2.0.downsample.0.weight",
        "layer2.0.downsample.1.running_mean", "fc.weight", "fc.bias"}},
      {"mobilenet_v2",
       {"features.0.0.weight", "features.1.conv.0.0.weight", "features.1.conv.1.weight",
        "features.1.conv.2.running_mean", "features.17.conv.0.1.bias", "features.17.conv.2.weight",
        "features.17.conv.3.weight", "features.18.0.weight", "classifier.1.weight"}},
      {"efficientnet_b0",
       {"features.0.0.weight", "features.1.0.block.0.0.weight", "features.1.0.block.1.fc1.bias",
        "features.1.0.block.2.1.weight", "features.4.2.block.2.fc2.weight", "features.7.0.block.3.0.weight",
        "features.8.1.running_var", "classifier.1.bias"}},
      {"efficientnet_b3",
       {"features.1.1.block.2.0.weight", "features.4.4.block.2.fc1.weight", "features.7.1.block.3.1.bias",
        "features.8.0.weight"}},
      {"mobilenet_v3_large",
       {"features.0.1.running_mean", "features.1.block.0.0.weight", "features.1.block.1.1.weight",
        "features.2.block.2.0.weight", "features.4.block.2.fc1.bias", "features.4.block.3.0.weight",
        "features.7.block.2.1.bias", "features.15.block.3.1.running_var", "features.16.0.weight", "classifier.0.weight",
        "classifier.3.bias"}},
      {"mobilenet_v3_small",
       {"features.1.block.0.0.weight", "features.1.block.1.fc2.weight", "features.1.block.2.1.weight",
        "features.11.block.2.fc1.weight", "features.12.1.bias", "classifier.3.weight"}},
      {"inception_v3",
       {"Conv2d_1a_3x3.conv.weight", "Conv2d_2b_3x3.bn.running_var", "Conv2d_4a_3x3.bn.bias",
        "Mixed_5b.branch1x1.conv.weight", "Mixed_5c.branch5x5_2.conv.weight", "Mixed_5d.branch3x3dbl_3.bn.weight",
        "Mixed_5d.branch_pool.conv.weight", "Mixed_6a.branch3x3.conv.weight", "Mixed_6a.branch3x3dbl_2.bn.bias",
        "Mixed_6b.branch7x7_2.conv.weight", "Mixed_6e.branch7x7dbl_5.bn.weight", "Mixed_7a.branch3x3_2.conv.weight",
        "Mixed_7a.branch7x7x3_4.conv.weight", "Mixed_7b.branch3x3_2b.conv.weight", "Mixed_7c.branch3x3dbl_3a.bn.bias",
        "fc.weight"}},
      {"shufflenet_v2_x1_0",
       {"conv1.0.weight", "stage2.0.branch1.0.weight", "stage2.0.branch1.3.bias", "stage2.0.branch2.6.running_var",
        "stage3.7.branch2.3.weight", "stage4.3.branch2.5.weight", "conv5.1.weight", "fc.bias"}},
      {"regnet_y_400mf",
       {"stem.0.weight", "trunk_output.block1.block1-0.proj.0.weight", "trunk_output.block1.block1-0.f.se.fc1.bias",
        "trunk_output.block3.block3-5.f.b.1.running_mean", "trunk_output.block4.block4-5.f.c.0.weight", "fc.weight"}},
      {"densenet121",
       {"features.conv0.weight", "features.norm0.bias", "features.denseblock1.denselayer1.norm1.weight",
        "features.denseblock3.denselayer24.conv2.weight", "features.transition3.conv.weight",
        "features.norm5.running_var", "classifier.weight"}},
      {"convnext_tiny",
       {"features.0.0.bias", "features.0.1.weight", "features.1.0.layer_scale", "features.1.2.block.0.weight",
        "features.3.0.block.2.bias", "features.4.0.weight", "features.4.1.weight", "features.5.8.block.5.weight",
        "features.7.2.block.3.bias", "classifier.0.weight", "classifier.2.bias"}},
      {"swin_t",
       {"features.0.0.weight", "features.0.2.bias", "features.1.1.attn.relative_position_bias_table",
        "features.1.0.attn.qkv.bias", "features.2.norm.weight", "features.2.reduction.weight",
        "features.5.5.mlp.3.weight", "features.7.1.norm2.bias", "norm.weight", "head.weight"}},
      // Keras's; torchvision has none.
      {"resnet101_v2",
       {"conv1_conv.bias", "conv2_block1_preact_bn.running_mean", "conv2_block1_0_conv.bias",
        "conv2_block1_1_conv.weight", "conv2_block3_2_bn.weight", "conv4_block23_3_conv.bias", "post_bn.running_var",
        "predictions.bias"}},
  };
  for (const auto& [arch, names] : expected) {
    const ir::Graph graph = build_model({.arch = arch, .num_classes = 2, .input = {3, 96, 96}});
    for (const char* name : names) {
      const ir::Value* value = graph.find_value(name);
      EXPECT_TRUE(value && value->is_constant()) << arch << " " << name;
    }
  }
}

TEST(ZooTest, DropoutFollowsTheOptions) {
  const auto ratio = [](const ModelOptions& options) {
    const ir::Graph graph = build_model(options);
    const ir::Node* node = graph.find_node("classifier.0");
    return node ? node->input(1)->constant->values<float>()[0] : 0.0f;
  };
  const auto options = [](double dropout) {
    return ModelOptions{.arch = "mobilenet_v2", .num_classes = 3, .input = {3, 32, 32}, .dropout = dropout};
  };
  EXPECT_EQ(ratio(options(-1)), 0.2f);
  EXPECT_EQ(ratio(options(0.4)), 0.4f);
  EXPECT_EQ(ratio(options(0)), 0.0f);
}

TEST(ZooTest, UnknownNameIsAUsageErrorWithTheNearest) {
  try {
    build_model({.arch = "resnet19"});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    EXPECT_THAT(e.what(), HasSubstr("unknown network 'resnet19'; did you mean 'resnet"));
    EXPECT_THAT(e.what(), HasSubstr("known networks: resnet20, resnet32"));
  }
  EXPECT_THROW(default_options("alexnet"), UserError);
}

TEST(ZooTest, ImpossibleOptionsAreUsageErrors) {
  const auto message = [](ModelOptions options) {
    options.arch = "resnet20";
    try {
      build_model(options);
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ExitCode::kUsage);
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message({.num_classes = 0}), HasSubstr("class count is 0"));
  EXPECT_THAT(message({.input = {0, 3, 3}}), HasSubstr("input channel count is 0"));
  EXPECT_THAT(message({.input = {3, 1 << 20, 3}}), HasSubstr("input height is 1048576"));
  EXPECT_THAT(message({.dropout = 1}), HasSubstr("dropout is 1"));
  EXPECT_THAT(message({.dropout = std::nan("")}), HasSubstr("dropout is nan"));
}

}  // namespace
}  // namespace octet::models

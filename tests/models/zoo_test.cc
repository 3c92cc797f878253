#include "models/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "ir/infer.h"
#include "ir/summary.h"
#include "ir/verify.h"
#include "models/tested_models.h"

namespace octet::models {
namespace {

using ::testing::HasSubstr;

// Of others the weights are not drawn where a test does not look at them: a hundred million take seconds.
bool is_small(const ModelInfo& info) {
  return info.parameters < 10'000'000;
}

class EveryModel : public ::testing::TestWithParam<ModelInfo> {};

TEST_P(EveryModel, HasThePublishedParametersAndMacs) {
  const ModelInfo& info = GetParam();
  ModelOptions options = default_options(info.name);
  options.draw_weights = is_small(info);
  const ir::Graph graph = build_model(options);
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
  ir::Graph graph = build_model(
      {.arch = GetParam().name, .num_classes = 7, .input = {1, side, side}, .draw_weights = is_small(GetParam())});
  ir::verify(graph);
  ir::set_batch(graph, 5);
  EXPECT_EQ(graph.outputs().at(0)->type.shape, (ir::Shape{5, 7}));
}

TEST_P(EveryModel, HasFeatureLevels) {
  const bool draw = is_small(GetParam());
  Backbone backbone = build_backbone({.arch = GetParam().name, .input = {3, 64, 96}, .draw_weights = draw});
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
  const ir::Graph whole = build_model({.arch = GetParam().name, .input = {3, height, 96}, .draw_weights = draw});
  for (const ir::Value* v : backbone.graph.constants()) {
    if (v->type.data_type != ir::DataType::kFloat32) continue;  // shapes
    ASSERT_NE(whole.find_value(v->name), nullptr) << v->name;
    EXPECT_EQ(hash64(v->constant->bytes()), hash64(whole.find_value(v->name)->constant->bytes())) << v->name;
  }
  EXPECT_THAT([&] { backbone.level(3); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("no features of stride 3; it has ")));
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, ::testing::ValuesIn(tested_models()),
                         [](const auto& info) { return info.param.name; });

TEST(VggTest, NeedsThirtyTwoPixels) {
  EXPECT_THAT(
      [] {
        build_model({.arch = "vgg16_bn", .input = {3, 28, 40}});
      },
      ::testing::ThrowsMessage<UserError>(HasSubstr("at least 32x32 pixels, not 28x40")));
  const ir::Graph graph =
      build_model({.arch = "vgg16_bn", .num_classes = 10, .input = {3, 32, 32}, .draw_weights = false});
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
    const ir::Graph graph = build_model({.arch = arch, .num_classes = 2, .input = {3, 96, 96}, .draw_weights = false});
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

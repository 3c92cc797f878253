// Networks in the layout of NVIDIA TAO.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/infer.h"
#include "ir/summary.h"
#include "ir/verify.h"
#include "models/tested_models.h"

namespace octet::models {
namespace {

using ::testing::HasSubstr;

// TAO's templates: names, normalization, and a level of stride 16 that is the last where TAO's detector ends there.
class EveryTaoModel : public ::testing::TestWithParam<ModelInfo> {};

TEST_P(EveryTaoModel, IsATemplateOfTao) {
  const ModelOptions options = {.arch = GetParam().name,
                                .num_classes = 5,
                                .input = {3, 64, 96},
                                .draw_weights = false,
                                .layout = Layout::kTao,
                                .use_batch_norm = true};
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
                                              .draw_weights = false,
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
  ModelOptions options = {.arch = "resnet18", .input = {3, 64, 64}, .draw_weights = false, .layout = Layout::kTao};
  EXPECT_EQ(parameters(options), tao_resnet18(false));
  options.all_projections = true;
  EXPECT_EQ(parameters(options), tao_resnet18(true));
}

TEST(TaoLayoutTest, ResnetsEndAtStrideSixteenWithoutPools) {
  const auto strides = [](std::optional<bool> use_pooling) {
    std::vector<int64_t> out;
    const Backbone backbone = build_backbone({.arch = "resnet18",
                                              .input = {3, 64, 64},
                                              .draw_weights = false,
                                              .layout = Layout::kTao,
                                              .use_pooling = use_pooling});
    for (const FeatureLevel& level : backbone.levels) out.push_back(level.stride);
    return out;
  };
  EXPECT_EQ(strides({}), (std::vector<int64_t>{4, 8, 16}));
  EXPECT_EQ(strides(true), (std::vector<int64_t>{4, 8, 16, 32}));
  const Backbone backbone =
      build_backbone({.arch = "resnet50", .input = {3, 64, 64}, .draw_weights = false, .layout = Layout::kTao});
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
    return build_backbone({.arch = arch, .input = {3, 32, 32}, .draw_weights = false, .layout = Layout::kTao})
        .blocks.at(node);
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
}  // namespace
}  // namespace octet::models

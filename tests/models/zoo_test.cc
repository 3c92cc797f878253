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
  const int64_t side = GetParam().name == "vgg16_bn" ? 32 : 28;  // VGG halves five times without padding
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
  EXPECT_GE(backbone.levels.size(), 3u);
  ir::verify(backbone.graph);
  EXPECT_EQ(backbone.graph.remove_dead(), 0) << "something is no part of any level";
  // With the same weights as the whole network.
  const ir::Graph whole = build_model({.arch = GetParam().name, .input = {3, 64, 96}});
  for (const ir::Value* v : backbone.graph.constants())
    EXPECT_EQ(hash64(v->constant->bytes()), hash64(whole.find_value(v->name)->constant->bytes())) << v->name;
  EXPECT_THAT([&] { backbone.level(3); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("no features of stride 3; it has ")));
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, ::testing::ValuesIn(all_models()),
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
  };
  for (const auto& [arch, names] : expected) {
    const ir::Graph graph = build_model({.arch = arch, .num_classes = 2, .input = {3, 32, 32}});
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

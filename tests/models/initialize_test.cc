#include "models/initialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/files.h"
#include "models/zoo.h"

namespace octet::models {
namespace {

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
}  // namespace
}  // namespace octet::models

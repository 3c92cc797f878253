// Means of activations that follow from batch norms, and biases that are corrected by them.
#include "passes/analytic_bias_correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "ir/evaluate_graph.h"
#include "passes/block_builder.h"
#include "passes/channel_moments.h"
#include "passes/fold_batch_norm.h"
#include "passes/shift_biases.h"
#include "quant/options.h"
#include "support/post_training.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Value;

double density(double z) {
  return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
}
double probability(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}
// Nagel et al., 2019, appendix C: of a normal variable that a Relu, or a Clip from 0 to `end`, cuts.
double mean_of_relu(double mean, double deviation) {
  return deviation * density(-mean / deviation) + mean * probability(mean / deviation);
}
double mean_of_clip(double mean, double deviation, double end) {
  const double a = -mean / deviation, b = (end - mean) / deviation;
  return deviation * (density(a) - density(b)) + mean * (probability(b) - probability(a)) + end * (1 - probability(b));
}

constexpr int64_t kChannels = 6;

struct Known {
  BlockBuilder b{{1, kChannels, 4, 4}};
  Value* y = b.bn(b.x, "bn");
  std::map<std::string, ChannelMoments> moments = batch_norm_moments(b.graph);
  const ChannelMoments& of() const { return moments.at(y->name); }
  std::vector<double> mean(const Value* value) const { return channel_means(b.graph, moments).at(value->name); }
};

TEST(ChannelMoments, AreTheOffsetsAndScalesOfBatchNorms) {
  Known k;
  const std::vector<float> gamma = k.y->producer->input(1)->constant->to_floats(),
                           beta = k.y->producer->input(2)->constant->to_floats();
  for (size_t c = 0; c < kChannels; ++c) {
    EXPECT_EQ(k.of().mean[c], beta[c]);
    EXPECT_NEAR(k.of().deviation[c], std::abs(gamma[c]), 1e-4);  // epsilon is 1e-5, variances are at least 0.1
    EXPECT_NEAR(k.mean(k.y)[c], beta[c], 1e-6);
  }
}

TEST(ChannelMoments, GoThroughActivationsAsTheClosedFormsDo) {
  Known k;
  Value* relu = k.b.relu(k.y, "relu");
  Value* limits[] = {k.b.graph.add_constant("low", ir::Tensor::scalar(0.0f)),
                     k.b.graph.add_constant("high", ir::Tensor::scalar(0.5f))};
  Value* clip = k.b.op(OpKind::kClip, "clip", {k.y, limits[0], limits[1]});
  Value* sum = k.b.add(relu, clip, "sum");
  Value* pooled = k.b.op(OpKind::kGlobalAveragePool, "pool", {sum});
  Value* flat = k.b.op(OpKind::kFlatten, "flat", {pooled}, {{"axis", int64_t{1}}});
  Value* joined = k.b.op(OpKind::kConcat, "joined", {relu, clip}, {{"axis", int64_t{1}}});
  const std::vector<double> both = k.mean(joined);
  ASSERT_EQ(both.size(), size_t{2 * kChannels});
  for (size_t c = 0; c < kChannels; ++c) {
    const double m = k.of().mean[c], d = k.of().deviation[c], near = 0.01 * d;
    EXPECT_NEAR(k.mean(relu)[c], mean_of_relu(m, d), near);
    EXPECT_NEAR(k.mean(clip)[c], mean_of_clip(m, d, 0.5), near);
    EXPECT_NEAR(k.mean(flat)[c], mean_of_relu(m, d) + mean_of_clip(m, d, 0.5), 2 * near);
    EXPECT_NEAR(both[c], mean_of_relu(m, d), near);
    EXPECT_NEAR(both[kChannels + c], mean_of_clip(m, d, 0.5), near);
  }
}

TEST(ChannelMoments, OfSwishAreThoseOfItsValuesNotOfItsFactors) {
  Known k;
  const Value* swish = k.b.silu(k.y, "swish");
  for (size_t c = 0; c < kChannels; ++c) {
    const double m = k.of().mean[c], d = k.of().deviation[c];
    double wanted = 0;
    for (double z = -8; z < 8; z += 0.01) {
      const double x = m + d * z;
      wanted += 0.01 * density(z) * x / (1 + std::exp(-x));
    }
    EXPECT_NEAR(k.mean(swish)[c], wanted, 0.01 * d);
  }
}

TEST(ChannelMoments, GoThroughLayersWithoutABatchNormAndEndWhereNothingIsKnown) {
  Known k;
  const Value* conv = k.b.conv(k.b.relu(k.y, "relu"), "conv", 3, 3, true);
  const std::vector<float> w = conv->producer->input(1)->constant->to_floats(),
                           bias = conv->producer->input(2)->constant->to_floats();
  std::vector<double> wanted(bias.begin(), bias.end());
  const std::vector<double> read = k.mean(conv->producer->input(0));
  for (size_t i = 0; i < w.size(); ++i) wanted[i / (9 * kChannels)] += w[i] * read[i / 9 % kChannels];
  for (size_t c = 0; c < wanted.size(); ++c) EXPECT_NEAR(k.mean(conv)[c], wanted[c], 1e-4);

  const Value* unknown = k.b.conv(k.b.x, "other", kChannels);
  Value* softmax = k.b.op(OpKind::kSoftmax, "softmax", {k.y});
  const Value* sum = k.b.add(k.y, k.b.graph.find_value(unknown->name), "sum");
  const auto means = channel_means(k.b.graph, k.moments);
  for (const Value* value : {unknown, static_cast<const Value*>(softmax), sum}) EXPECT_FALSE(means.count(value->name));
}

// Two blocks and a classifier, with statistics of batch norms that are those of the images.
class Corrected : public ::testing::Test {
 protected:
  static constexpr int kImages = 12;

  Corrected() {
    Value* x = b_.relu(b_.bn(b_.conv(b_.x, "a", 16, 3), "bn_a"), "ra");
    x = b_.silu(b_.bn(depthwise(x, "d"), "bn_d"), "rd");
    x = b_.relu(b_.bn(b_.conv(x, "c", 12), "bn_c"), "rc");
    x = b_.op(OpKind::kGlobalAveragePool, "mean", {x});
    b_.graph.add_output(b_.gemm(b_.op(OpKind::kFlatten, "flat", {x}, {{"axis", int64_t{1}}}), "fc", 5));
    std::normal_distribution<float> normal;
    for (int i = 0; i < kImages; ++i) {
      std::vector<float> pixels(size_t{3} * 16 * 16);
      for (float& p : pixels) p = normal(b_.engine);
      images_.push_back(ir::Tensor::of<float>({1, 3, 16, 16}, pixels));
    }
    for (const char* name : {"bn_a", "bn_d", "bn_c"}) learn_statistics(name);
  }

  Value* depthwise(Value* x, const std::string& name) {
    const int64_t n = BlockBuilder::channels(x);
    return b_.op(OpKind::kConv, name, {x, b_.parameter(name + ".weight", {n, 1, 3, 3})},
                 {{"group", n}, {"pads", std::vector<int64_t>(4, 1)}});
  }

  void learn_statistics(const std::string& name) {
    const Node* bn = b_.graph.find_node(name);
    const Value* read = bn->input(0);
    std::vector<double> sum(static_cast<size_t>(BlockBuilder::channels(read))), squares = sum;
    double count = 0;
    for (const ir::Tensor& image : images_)
      ir::evaluate_graph(b_.graph, {image}, [&](const Value& value, const ir::Tensor& tensor) {
        if (&value != read) return;
        const std::vector<float> x = tensor.to_floats();
        const size_t places = x.size() / sum.size();
        for (size_t i = 0; i < x.size(); ++i) sum[i / places] += x[i], squares[i / places] += double{x[i]} * x[i];
        count += static_cast<double>(places);
      });
    std::vector<float> mean, variance;
    for (size_t c = 0; c < sum.size(); ++c) {
      mean.push_back(static_cast<float>(sum[c] / count));
      variance.push_back(static_cast<float>(squares[c] / count - sum[c] / count * (sum[c] / count)));
    }
    b_.graph.set_constant(bn->input(3), ir::Tensor::of<float>(bn->input(3)->constant->shape(), mean));
    b_.graph.set_constant(bn->input(4), ir::Tensor::of<float>(bn->input(4)->constant->shape(), variance));
  }

  // Of the outputs of each layer, over channels: how far their means are from those of `wanted`.
  std::map<std::string, double> errors(const ir::Graph& wanted, const ir::Graph& graph) const {
    const auto a = layer_means(wanted), b = layer_means(graph);
    std::map<std::string, double> out;
    for (const auto& [name, means] : a)
      for (size_t c = 0; c < means.size(); ++c) out[name] += std::abs(means[c] - b.at(name)[c]);
    return out;
  }

  std::map<std::string, std::vector<double>> layer_means(const ir::Graph& graph) const {
    std::map<std::string, std::vector<double>> out;
    for (const ir::Tensor& image : images_)
      ir::evaluate_graph(graph, {image}, [&](const Value& value, const ir::Tensor& tensor) {
        if (!value.producer || (value.producer->kind != OpKind::kConv && value.producer->kind != OpKind::kGemm)) return;
        std::vector<double>& sums = out[value.producer->name];
        sums.resize(static_cast<size_t>(tensor.shape()[1]));
        const std::vector<float> x = tensor.to_floats();
        for (size_t i = 0; i < x.size(); ++i) sums[i * sums.size() / x.size()] += x[i];
      });
    return out;
  }

  using Node = ir::Node;
  BlockBuilder b_{{1, 3, 16, 16}};
  std::vector<ir::Tensor> images_;
};

// Weights of 3 bits, so that there is much to correct, activations of 8.
quant::QuantOptions coarse_weights() {
  quant::QuantOptions options;
  options.placement.weight_bits = options.placement.outer_bits = 3;
  return options;
}

TEST_F(Corrected, LayersGetTheirMeansBackWithoutImages) {
  const std::map<std::string, ChannelMoments> known = batch_norm_moments(b_.graph);
  const ir::Graph plain = testing::calibrated(b_.graph, coarse_weights(), images_);
  const AnalyticCorrections found = analytic_bias_corrections(plain, known);
  EXPECT_THAT(found.unknown, ::testing::ElementsAre("a"));  // reads the images
  ir::Graph corrected = plain.clone(), whole = b_.graph.clone();
  EXPECT_EQ(shift_biases(corrected, found.shifts), 3);
  fold_batch_norm(whole);
  const auto before = errors(whole, plain), after = errors(whole, corrected);
  // What "d" reads is moved by the errors of "a", which stay; and zeros at the borders are no values of its channels.
  EXPECT_LT(after.at("c"), 0.6 * before.at("c"));
  EXPECT_LT(after.at("fc"), 0.6 * before.at("fc"));
}

TEST_F(Corrected, MeansFollowTheChannelsThatEqualizationDivides) {
  const std::map<std::string, ChannelMoments> known = batch_norm_moments(b_.graph);
  quant::QuantOptions options = coarse_weights();
  options.equalize = quant::Equalization::kExact;
  ir::Graph even = b_.graph.clone();
  PlacementRecord placed;
  run_pipeline(even, placement_passes(options, {}, &placed));
  run_pipeline(even, {find_pass("remove_fake_quant")});
  const auto divided = placed.divided.find(b_.graph.find_node("bn_a")->output()->name);
  ASSERT_NE(divided, placed.divided.end());
  ASSERT_THAT(divided->second, ::testing::Contains(::testing::Ne(0)));

  const ir::Graph plain = testing::calibrated(b_.graph, options, images_);
  const auto error_after = [&](const std::map<std::string, std::vector<int>>& factors) {
    ir::Graph corrected = plain.clone();
    shift_biases(corrected, analytic_bias_corrections(corrected, known, factors).shifts);
    return errors(even, corrected).at("d");
  };
  EXPECT_LT(error_after(placed.divided), 0.7 * error_after({}));
}

}  // namespace
}  // namespace octet::passes

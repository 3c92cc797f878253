// The choice of channels against TAO's rule, computed here in its own words.
#include "passes/prune/channel_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "passes/block_builder.h"
#include "passes/prune/cut.h"

namespace octet::passes {
namespace {

using Norms = std::vector<double>;
using Indices = std::vector<int64_t>;

// L2 of every row of a weight [filters, ...].
Norms norms_of(const ir::Graph& graph, const std::string& name) {
  const ir::Tensor& w = *graph.find_value(name)->constant;
  const std::vector<float> values = w.to_floats();
  const size_t filters = static_cast<size_t>(w.shape()[0]), depth = values.size() / filters;
  Norms out;
  for (size_t f = 0; f < filters; ++f) {
    double sum = 0;
    for (size_t i = 0; i < depth; ++i) sum += double{values[f * depth + i]} * double{values[f * depth + i]};
    out.push_back(std::sqrt(sum));
  }
  return out;
}

Norms by_max(Norms norms) {
  const double largest = *std::max_element(norms.begin(), norms.end());
  for (double& s : norms) s /= largest;
  return norms;
}

// keep = #(s > pth) -> max(keep, min(nf, n)) -> up to a multiple of pg -> min(n); the highest.
Indices tao_choice(const Norms& s, double pth, int64_t pg, int64_t nf) {
  const auto n = static_cast<int64_t>(s.size());
  int64_t keep = 0;
  for (const double v : s) keep += v > pth;
  keep = std::max(keep, std::min(nf, n));
  if (keep % pg != 0) keep += pg - keep % pg;
  keep = std::min(keep, n);
  Indices order(s.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return s[size_t(a)] > s[size_t(b)]; });
  order.resize(static_cast<size_t>(keep));
  std::sort(order.begin(), order.end());
  return order;
}

Indices kept(const ChannelGroups& groups, double threshold, const std::string& value, size_t axis) {
  const KeptIndices all = groups.at(threshold);
  const auto axes = all.find(value);
  if (axes == all.end() || axes->second.count(axis) == 0) return {};
  return axes->second.at(axis);
}

TEST(ChannelGroups, OneLayerByTaosRule) {
  BlockBuilder b({1, 4, 8, 8});
  b.graph.add_output(b.conv(b.relu(b.bn(b.conv(b.x, "a", 40, 3, true), "bn"), "relu"), "head", 2));
  ir::infer_shapes(b.graph);
  const Norms norms = norms_of(b.graph, "a.weight");
  for (const double pth : {0.1, 0.7, 0.85, 0.9, 0.95, 1.0})
    for (const int64_t pg : {1, 3, 8})
      for (const int64_t nf : {1, 16}) {
        const ChannelGroups groups(b.graph, {.granularity = pg, .min_filters = nf});
        Indices expected = tao_choice(by_max(norms), pth, pg, nf);
        if (expected.size() == 40) expected.clear();  // nothing goes
        EXPECT_EQ(kept(groups, pth, "a.weight", 0), expected) << pth << " " << pg << " " << nf;
        EXPECT_EQ(kept(groups, pth, "a.bias", 0), expected);
        EXPECT_EQ(kept(groups, pth, "bn.running_var", 0), expected);
        EXPECT_EQ(kept(groups, pth, "head.weight", 1), expected);
      }
  // s * n / |s|: thresholds in units of the root mean square, times the root of n.
  double squares = 0;
  for (const double s : norms) squares += s * s;
  Norms by_l2 = norms;
  for (double& s : by_l2) s = s * 40 / std::sqrt(squares);
  const ChannelGroups groups(b.graph, {.granularity = 1, .min_filters = 1, .normalizer = PruneNormalizer::kL2});
  EXPECT_EQ(kept(groups, 6.3, "a.weight", 0), tao_choice(by_l2, 6.3, 1, 1));
  EXPECT_GT(tao_choice(by_l2, 6.3, 1, 1).size(), 5u);
}

TEST(ChannelGroups, TiedLayersAreEqualized) {
  BlockBuilder b({1, 4, 8, 8});
  ir::Value* a = b.conv(b.x, "a", 24, 3);
  ir::Value* c = b.conv(b.relu(a, "relu"), "c", 24, 3);
  b.graph.add_output(b.conv(b.add(b.bn(a, "bn"), c, "add"), "head", 2));
  ir::infer_shapes(b.graph);
  const Norms na = by_max(norms_of(b.graph, "a.weight")), nc = by_max(norms_of(b.graph, "c.weight"));
  const std::pair<PruneEqualizer, double (*)(double, double)> rules[] = {
      {PruneEqualizer::kUnion, [](double p, double q) { return std::max(p, q); }},
      {PruneEqualizer::kIntersection, [](double p, double q) { return std::min(p, q); }},
      {PruneEqualizer::kArithmeticMean, [](double p, double q) { return (p + q) / 2; }},
      {PruneEqualizer::kGeometricMean, [](double p, double q) { return std::sqrt(p * q); }}};
  for (const auto& [equalizer, rule] : rules) {
    Norms both;
    for (size_t i = 0; i < na.size(); ++i) both.push_back(rule(na[i], nc[i]));
    const ChannelGroups groups(b.graph, {.granularity = 4, .min_filters = 4, .equalizer = equalizer});
    ASSERT_EQ(groups.layers().size(), 3u);
    EXPECT_EQ(groups.layers()[0].group, groups.layers()[1].group);
    EXPECT_EQ(groups.layers()[2].group, -1);
    EXPECT_EQ(groups.layers()[2].why_kept, "'head' is an output of the network");
    const Indices expected = tao_choice(both, 0.9, 4, 4);
    ASSERT_LT(expected.size(), 24u);
    for (const char* weights : {"a.weight", "c.weight"}) EXPECT_EQ(kept(groups, 0.9, weights, 0), expected);
    EXPECT_EQ(kept(groups, 0.9, "c.weight", 1), expected);
  }
}

TEST(ChannelGroups, AnExcludedMemberKeepsItsGroup) {
  BlockBuilder b({1, 4, 8, 8});
  ir::Value* a = b.conv(b.x, "a", 24, 3);
  ir::Value* c = b.conv(b.conv(a, "alone", 24), "c", 24, 3);
  b.graph.add_output(b.conv(b.add(a, c, "add"), "head", 2));
  ir::infer_shapes(b.graph);
  const ChannelGroups groups(b.graph, {.granularity = 1, .min_filters = 1, .excluded = {"c"}});
  EXPECT_EQ(groups.layers()[0].why_kept, "'c' is excluded");
  EXPECT_TRUE(kept(groups, 0.99, "a.weight", 0).empty());
  EXPECT_FALSE(kept(groups, 0.99, "alone.weight", 0).empty());
  EXPECT_THROW(ChannelGroups(b.graph, {.excluded = {"d"}}), UserError);
  EXPECT_TRUE(ChannelGroups(b.graph, {.excluded = {"*"}}).scores().empty());
}

// The widths of what a Concat joins are each a multiple of the granularity.
TEST(ChannelGroups, BlocksKeepTheirGranularity) {
  BlockBuilder b({1, 4, 8, 8});
  ir::Value* left = b.conv(b.x, "left", 24, 3);
  ir::Value* right = b.conv(b.x, "right", 16, 3);
  ir::Value* joined = b.op(ir::OpKind::kConcat, "joined", {left, right}, {{"axis", int64_t{1}}});
  ir::Value* sum = b.add(joined, b.conv(b.x, "whole", 40, 3), "sum");
  b.graph.add_output(b.conv(sum, "head", 2));
  ir::infer_shapes(b.graph);
  const ChannelGroups groups(b.graph, {.granularity = 8, .min_filters = 8});
  const ir::Graph pruned = cut_channels(b.graph, groups.at(0.97));
  for (const char* name : {"left", "right", "whole"})
    EXPECT_EQ((*pruned.find_value(name)->type.shape)[1] % 8, 0) << name;
  EXPECT_LT((*pruned.find_value("whole")->type.shape)[1], 40);
  EXPECT_EQ(groups.groups(), 1);
}

// Constants without elements are in damaged files alone; what a sanitizer says of them counts here.
TEST(ChannelGroups, CutsWhatHasNoElements) {
  ir::Graph g;
  ir::Value* none = g.add_constant("none", ir::Tensor::of<float>({4, 0}, std::vector<float>()));
  g.add_output(g.add(ir::OpKind::kTranspose, "y", {none}, {{"perm", std::vector<int64_t>{1, 0}}}));
  ir::infer_shapes(g);
  const ir::Graph cut = cut_channels(g, {{"none", {{0, {1, 3}}}}, {"y", {{1, {1, 3}}}}});
  EXPECT_EQ(cut.find_value("y")->type.shape, (ir::Shape{0, 2}));
}

TEST(ChannelGroups, FoldedNormalizationsSilenceFilters) {
  BlockBuilder b({1, 4, 8, 8});
  b.graph.add_output(b.conv(b.relu(b.bn(b.conv(b.x, "a", 16, 3), "bn"), "relu"), "head", 2));
  ir::infer_shapes(b.graph);
  std::vector<float> gamma(16, 1.0f);
  gamma[3] = 1e-4f, gamma[9] = 0;
  b.graph.set_constant(b.graph.find_value("bn.weight"), ir::Tensor::of<float>({16}, gamma));
  Indices expected;
  for (int64_t i = 0; i < 16; ++i)
    if (i != 3 && i != 9) expected.push_back(i);
  const PruneOptions folded{.granularity = 1, .min_filters = 1, .fold_batch_norm = true};
  EXPECT_EQ(kept(ChannelGroups(b.graph, folded), 0.01, "a.weight", 0), expected);
  const PruneOptions scale{.granularity = 1, .min_filters = 1, .criterion = PruneCriterion::kBatchNormScale};
  EXPECT_EQ(kept(ChannelGroups(b.graph, scale), 0.5, "a.weight", 0), expected);
  EXPECT_TRUE(kept(ChannelGroups(b.graph, {.granularity = 1, .min_filters = 1}), 0.01, "a.weight", 0).empty());
}

// Filters of a ConvTranspose with groups lie across its weights.
TEST(ChannelGroups, TransposedFilters) {
  BlockBuilder b({1, 4, 4, 4});
  ir::Value* a = b.conv(b.x, "a", 4);
  ir::Value* w = b.parameter("up.weight", {4, 3, 2, 2});
  ir::Value* up = b.op(ir::OpKind::kConvTranspose, "up", {a, w}, {{"group", int64_t{2}}});
  b.graph.add_output(b.conv(up, "head", 2));
  ir::infer_shapes(b.graph);
  const std::vector<float> values = w->constant->to_floats();
  Norms norms(6, 0.0);
  for (size_t in = 0; in < 4; ++in)
    for (size_t o = 0; o < 3; ++o)
      for (size_t k = 0; k < 4; ++k) norms[in / 2 * 3 + o] += std::pow(double{values[(in * 3 + o) * 4 + k]}, 2);
  for (double& v : norms) v = std::sqrt(v);
  norms = by_max(norms);
  // Channel o of both groups goes, or none.
  Norms units;
  for (size_t o = 0; o < 3; ++o) units.push_back(std::max(norms[o], norms[3 + o]));
  const PruneOptions options{.granularity = 1, .min_filters = 1};
  const double threshold = *std::min_element(units.begin(), units.end());
  EXPECT_EQ(kept(ChannelGroups(b.graph, options), threshold, "up.weight", 1), tao_choice(units, threshold, 1, 1));
  PruneOptions tao = options;
  tao.tao_compatible = true;
  const ChannelGroups groups(b.graph, tao);
  EXPECT_TRUE(kept(groups, 1, "up.weight", 1).empty());
  EXPECT_EQ(groups.layers()[1].why_kept, "TAO leaves ConvTranspose 'up' whole");
}

TEST(ChannelGroups, QuantizedNetworksAreRefused) {
  BlockBuilder b({1, 4, 4, 4});
  ir::Value* scale = b.graph.add_constant("s", ir::Tensor::scalar(1.0f));
  ir::Value* zero = b.graph.add_constant("z", ir::Tensor::scalar<int8_t>(0));
  b.graph.add_output(b.op(ir::OpKind::kFakeQuantize, "q", {b.x, scale, zero}));
  ir::infer_shapes(b.graph);
  try {
    ChannelGroups(b.graph, {});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("prune the float model, train that again"), std::string::npos);
    EXPECT_EQ(error.code(), ExitCode::kUsage);
  }
}

}  // namespace
}  // namespace octet::passes

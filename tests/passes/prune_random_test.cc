// Pruning against its definition: whatever goes, the pruned network computes what the whole one computes with zeros in
// the place of these channels, bit for bit where sums are taken in float64 (ir::evaluate).
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "fuzz/graph_maker.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/evaluate.h"
#include "passes/place_fake_quant.h"
#include "passes/prune/cut.h"
#include "support/prunable_net.h"
#include "support/sanitized.h"

namespace octet::passes {
namespace {

// Open sizes become a batch of 2.
void close(ir::Graph& graph) {
  for (const auto& input : graph.inputs())
    for (int64_t& d : *input->type.shape)
      if (d == ir::kDynamic) d = 2;
  ir::infer_shapes(graph);
}

// How many constants and tensors lost something; nothing where this network has no answer.
std::optional<size_t> prune_and_compare(const ir::Graph& graph, double threshold, PruneOptions options) {
  options.granularity = 1, options.min_filters = 1;
  const ChannelGroups groups(graph, options);
  const KeptIndices kept = groups.at(threshold);
  ir::Graph masked = mask_channels(graph, kept), pruned = cut_channels(graph, kept);
  ir::verify(pruned);
  Outputs expected, actual;
  try {
    expected = outputs_of(masked);
  } catch (const UserError&) {
    return std::nullopt;  // no evaluation
  }
  actual = outputs_of(pruned);
  EXPECT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].size(), expected[i].size());
    for (size_t k = 0; k < std::min(actual[i].size(), expected[i].size()); ++k) {
      if (!std::isfinite(expected[i][k])) return std::nullopt;  // infinity times zero
      EXPECT_EQ(actual[i][k], expected[i][k]) << "output " << i << " [" << k << "]";
      if (actual[i][k] != expected[i][k]) return std::nullopt;
    }
  }
  return kept.size();
}

// What may happen in a file: every operator, joined without sense.
TEST(PruneRandom, OddGraphs) {
  constexpr uint32_t kGraphs = testing::kSanitized ? 2000 : 16000;
  size_t tried = 0, cut = 0;
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes(400);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
    testing::ByteSource source(bytes);
    ir::Graph graph;
    std::optional<size_t> changed;
    try {
      graph = testing::GraphMaker(source).make();
      close(graph);
      remove_fake_quant(graph);
      ir::infer_shapes(graph);
      for (const ir::Value* v : graph.values())
        if (v->type.shape) require(ir::element_count(*v->type.shape) < 20'000, "large");
      changed = prune_and_compare(graph, random() % 100 / 100.0, {});
    } catch (const UserError&) {
      continue;  // it does not fit with this batch, is quantized, or has no evaluation
    }
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
    tried += changed.has_value();
    cut += changed.value_or(0) > 0;
  }
  EXPECT_GT(tried, kGraphs / 32);
  if (!testing::kSanitized) {
    EXPECT_GT(cut, 5u);
  }
}

// What real networks are made of.
TEST(PruneRandom, Networks) {
  constexpr uint32_t kNetworks = testing::kSanitized ? 100 : 600;
  size_t cut = 0;
  for (uint32_t seed = 1; seed <= kNetworks; ++seed) {
    testing::PrunableNet net(seed);
    const auto changed = prune_and_compare(net.graph(), 0.6 + seed % 10 / 25.0, {});
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << "\n" << ir::to_text(net.graph());
    ASSERT_TRUE(changed.has_value());
    cut += *changed > 5;
  }
  EXPECT_GT(cut, kNetworks * 2 / 3);
}

}  // namespace
}  // namespace octet::passes

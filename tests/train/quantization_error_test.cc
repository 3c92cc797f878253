#include "train/quantization_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "train/small_training.h"

namespace octet::train {
namespace {

using testing::quadrants;
using testing::small_network;

QuantizationErrors measure(const ir::Graph& graph, const data::Dataset& pictures, int64_t images = 64) {
  data::Loader loader(pictures, {.batch_size = 16});
  return measure_quantization_errors(graph, loader, images);
}

void scale(ir::Graph& graph, const std::string& name, float factor) {
  ir::Value* value = graph.find_value(name);
  std::vector<float> scales = value->constant->to_floats();
  for (float& s : scales) s *= factor;
  graph.set_constant(value, ir::Tensor::of<float>(value->constant->shape(), scales));
}

TEST(QuantizationError, NamesTheQuantizerThatCostsMost) {
  const auto pictures = quadrants(64, 3);
  for (const bool of_weights : {true, false}) {
    ir::Graph graph = small_network(true);
    std::string culprit, constant;
    for (const auto& node : graph.nodes())
      if (node->kind == ir::OpKind::kFakeQuantize && node->input(0)->is_constant() == of_weights && culprit.empty())
        culprit = node->name, constant = node->input(1)->name;
    const QuantizationErrors before = measure(graph, *pictures);
    scale(graph, constant, 30);
    const QuantizationErrors after = measure(graph, *pictures);
    EXPECT_EQ(after.quantizers.at(0).quantizer, culprit);
    EXPECT_LT(after.quantizers.at(0).own_db, 20);
    EXPECT_LT(after.output_db, before.output_db - 10);
    EXPECT_EQ(after.images, 64);
    for (const QuantizerError& e : after.quantizers) {
      EXPECT_EQ(e.of_weights, graph.find_node(e.quantizer)->input(0)->is_constant());
      EXPECT_FALSE(e.readers.empty());
      EXPECT_GT(e.cosine, 0.5) << e.quantizer;
      EXPECT_LE(e.cosine, 1.0 + 1e-9);
    }
  }
}

TEST(QuantizationError, CountsWhatIsClipped) {
  const auto pictures = quadrants(32, 3);
  ir::Graph graph = small_network(true);
  const ir::Node* first = nullptr;
  for (const auto& node : graph.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize && !node->input(0)->is_constant() && !first) first = node.get();
  const auto clipped = [&](const QuantizationErrors& found) {
    for (const QuantizerError& e : found.quantizers)
      if (e.quantizer == first->name) return e.clipped;
    return -1.0;
  };
  EXPECT_LT(clipped(measure(graph, *pictures)), 0.05);
  scale(graph, first->input(1)->name, 0.1f);
  EXPECT_GT(clipped(measure(graph, *pictures)), 0.2);
}

TEST(QuantizationError, DoesNotDependOnBatches) {
  const auto pictures = quadrants(64, 3);
  const ir::Graph graph = small_network(true);
  data::Loader whole(*pictures, {.batch_size = 64});
  const QuantizationErrors a = measure_quantization_errors(graph, whole, 64), b = measure(graph, *pictures);
  ASSERT_EQ(a.quantizers.size(), b.quantizers.size());
  EXPECT_NEAR(a.output_db, b.output_db, 1e-3);
  for (size_t i = 0; i < a.quantizers.size(); ++i) {
    EXPECT_EQ(a.quantizers[i].quantizer, b.quantizers[i].quantizer);
    EXPECT_NEAR(a.quantizers[i].isolated_db.value(), b.quantizers[i].isolated_db.value(), 1e-2);
    // Gradients of weights are summed over a batch before they are squared.
    EXPECT_NEAR(a.quantizers[i].fisher_db, b.quantizers[i].fisher_db, a.quantizers[i].of_weights ? 3 : 1e-2);
  }
}

// Where errors are like independent ones it says what running each quantizer by itself says.
TEST(QuantizationError, FisherForetellsWhatEachQuantizerCostsAlone) {
  const auto pictures = quadrants(256, 3);
  ir::Graph graph = small_network(true);
  scale(graph, "conv.weight/fake_quantize/scale", 4);
  const QuantizationErrors found = measure(graph, *pictures, 256);
  ASSERT_EQ(found.quantizers.size(), 2u);
  for (const QuantizerError& e : found.quantizers) {
    EXPECT_NEAR(e.fisher_db, e.isolated_db.value(), 3) << e.quantizer;
    EXPECT_GT(e.isolated_db.value(), 15) << e.quantizer;
    EXPECT_LT(e.isolated_db.value(), 60) << e.quantizer;
  }
  // And alone, without these passes.
  data::Loader loader(*pictures, {.batch_size = 16});
  const QuantizationErrors quick = measure_quantization_errors(graph, loader, 256, {}, false);
  ASSERT_EQ(quick.quantizers.size(), 2u);
  EXPECT_EQ(quick.output_db, found.output_db);
  EXPECT_LE(quick.quantizers[0].fisher_db, quick.quantizers[1].fisher_db);
  for (const QuantizerError& e : quick.quantizers) EXPECT_FALSE(e.isolated_db);
}

TEST(QuantizationError, RefusesAFloatNetwork) {
  const auto pictures = quadrants(16, 3);
  EXPECT_THROW(measure(small_network(false), *pictures), UserError);
}

}  // namespace
}  // namespace octet::train

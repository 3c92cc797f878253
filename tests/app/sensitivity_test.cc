// Sensitivity of layers by the real engine: one layer is made to cost more than all others.
#include "app/sensitivity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "passes/block_builder.h"
#include "support/post_training.h"
#include "support/random_images.h"

namespace octet::app {
namespace {

// Weights of one layer are so uneven that one scale for all of them leaves most no codes.
ir::Graph sensitive_network() {
  passes::BlockBuilder b({1, 3, 16, 16});
  ir::Value* y = b.x;
  for (const char* name : {"first", "bad", "third"}) y = b.relu(b.conv(y, name, 8, 3, true), str(name, ".relu"));
  y = b.op(ir::OpKind::kGlobalAveragePool, "mean", {y});
  b.graph.add_output(b.gemm(b.op(ir::OpKind::kFlatten, "flat", {y}, {{"axis", int64_t{1}}}), "fc", 5));
  ir::Value* weights = b.graph.find_value("bad.weight");
  std::vector<float> w = weights->constant->to_floats();
  w[0] = 100;
  b.graph.set_constant(weights, ir::Tensor::of<float>(weights->constant->shape(), w));
  return std::move(b.graph);
}

ir::Graph quantized(const ir::Graph& graph, bool per_tensor) {
  quant::QuantOptions options;
  options.placement.weights_per_tensor = per_tensor;
  passes::BlockBuilder random;
  std::vector<ir::Tensor> images;
  for (int i = 0; i < 4; ++i) images.push_back(ir::Tensor::of<float>({1, 3, 16, 16}, random.random(3 * 16 * 16)));
  return testing::calibrated(graph, options, images);
}

TEST(Sensitivity, TheLayerThatCostsMostComesFirst) {
  testing::RandomImages images;
  const GraphRunner run = run_by_engine(images.loader, {.threads = 1});
  int64_t done = 0;
  const Sensitivity found = measure_sensitivity(quantized(sensitive_network(), /*per_tensor=*/true), run,
                                                [&](int64_t layers) { done = layers; });
  ASSERT_EQ(found.layers.size(), 5u);
  EXPECT_EQ(done, 5);
  EXPECT_EQ(found.layers[0].node, "bad");
  EXPECT_EQ(found.layers[0].op, "Conv");
  EXPECT_FALSE(found.codes_only);
  EXPECT_LT(found.layers[0].alone_db, found.layers[1].alone_db - 6);
  EXPECT_GT(found.layers[0].without_db, found.whole_db + 3) << "most of the noise is its own";
  for (size_t i = 1; i < found.layers.size(); ++i) EXPECT_NEAR(found.layers[i].without_db, found.whole_db, 2);

  const std::string table = sensitivity_table(found, 2);
  EXPECT_NE(table.find("bad"), std::string::npos) << table;
  EXPECT_NE(table.find("all quantized: "), std::string::npos) << table;
  const auto json = sensitivity_json(found);
  EXPECT_EQ(json["layers"].size(), 5u);
  EXPECT_EQ(json["layers"][0]["layer"], "bad");
}

TEST(Sensitivity, SaysWhereTheWeightsAreCodesAlready) {
  testing::RandomImages images;
  const GraphRunner run = run_by_engine(images.loader, {.threads = 1});
  ir::Graph graph = quantized(sensitive_network(), true);
  for (const auto& node : graph.nodes())
    if (node->kind == ir::OpKind::kFakeQuantize && node->input(0)->is_constant()) {
      const ir::Tensor& w = *node->input(0)->constant;
      const float scale = node->input(1)->constant->to_floats()[0];
      std::vector<float> values = w.to_floats();
      for (float& v : values) v = std::nearbyint(v / scale) * scale;
      graph.set_constant(node->input(0), ir::Tensor::of<float>(w.shape(), values));
    }
  EXPECT_TRUE(measure_sensitivity(graph, run).codes_only);
}

TEST(Sensitivity, RatiosOfSeveralOutputs) {
  EXPECT_NEAR(signal_to_noise_db({{1, 0}, {10}}, {{1, 0.1f}, {10}}), 23.0103, 1e-3);
  EXPECT_EQ(signal_to_noise_db({{1, 2}}, {{1, 2}}), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(sensitivity_json({.whole_db = std::numeric_limits<double>::infinity()})["sqnr_db"].is_null());
  EXPECT_THROW(measure_sensitivity(sensitive_network(), [](const ir::Graph&) { return NetworkOutputs(); }), UserError);
}

}  // namespace
}  // namespace octet::app

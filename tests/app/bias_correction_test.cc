// Bias correction on the engine, beside means that the plain evaluator finds.
#include "app/bias_correction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "app/calibration.h"
#include "app/watched_plan.h"
#include "ir/evaluate_graph.h"
#include "ir/infer.h"
#include "passes/block_builder.h"
#include "passes/place_fake_quant.h"
#include "passes/shift_biases.h"
#include "support/random_images.h"

namespace octet::app {
namespace {

const std::vector<std::string> kLayers = {"first", "second", "third"};

// Three convolutions behind one another with little left of most of their weights: the scales are those of outliers.
ir::Graph coarse_network() {
  passes::BlockBuilder b({ir::kDynamic, 3, 16, 16});
  ir::Value* x = b.relu(b.conv(b.x, "first", 8, 3, true), "first.relu");
  x = b.relu(b.conv(x, "second", 8, 3, true), "second.relu");
  x = b.conv(x, "third", 4, 1, false);
  b.graph.add_output(b.op(ir::OpKind::kGlobalAveragePool, "pool", {x}));
  for (const auto& node : b.graph.nodes()) {
    if (node->kind != ir::OpKind::kConv) continue;
    std::vector<float> weights = node->input(1)->constant->to_floats();
    const size_t of_channel = weights.size() / static_cast<size_t>(node->input(1)->constant->shape()[0]);
    for (size_t i = 0; i < weights.size(); i += of_channel) weights[i] = 12 * std::abs(weights[i]) + 1;
    node->input(1)->constant = ir::Tensor::of<float>(node->input(1)->constant->shape(), weights);
  }
  return std::move(b.graph);
}

ir::Graph calibrated(const ir::Graph& graph, int images) {
  testing::RandomImages pictures(images, images);
  ir::Graph out = graph.clone();
  calibrate(out, pictures.loader, {.calibration = {.method = quant::CalibrationMethod::kMse}}, {}, observe_by_engine);
  return out;
}

// Of each layer's output channels, over all images.
std::map<std::string, std::vector<double>> means(const ir::Graph& graph, int images, bool quantized) {
  ir::Graph network = graph.clone();
  for (size_t i = 0; i < kLayers.size(); ++i) {
    ir::Value* value = network.find_node(kLayers[i])->output();
    if (i < network.outputs().size())
      network.set_output_value(i, value);
    else
      network.add_output(value);
  }
  if (!quantized) passes::remove_fake_quant(network);
  testing::RandomImages pictures(images, images);
  pictures.loader.start_epoch(0);
  const data::Batch batch = *pictures.loader.next();
  const std::vector<float> pixels(batch.images.data(), batch.images.data() + batch.images.size());
  const auto outputs = ir::evaluate_graph(network, {ir::Tensor::of<float>({batch.size, 3, 16, 16}, pixels)});
  std::map<std::string, std::vector<double>> out;
  for (size_t i = 0; i < kLayers.size(); ++i) {
    const ir::Shape& shape = outputs[i].shape();
    const std::vector<float> values = outputs[i].to_floats();
    std::vector<double>& mean = out[kLayers[i]];
    mean.assign(static_cast<size_t>(shape[1]), 0.0);
    const auto places = static_cast<size_t>(shape[2] * shape[3]);
    for (size_t k = 0; k < values.size(); ++k)
      mean[k / places % mean.size()] += double{values[k]} / static_cast<double>(places * static_cast<size_t>(shape[0]));
  }
  return out;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out = std::max(out, std::abs(a[i] - b[i]));
  return out;
}

TEST(BiasCorrection, GivesTheChannelsOfAllLayersTheirMeansBack) {
  const int images = 6;  // that run together, so that the means are those of the network with the new biases
  const ir::Graph graph = calibrated(coarse_network(), images);
  testing::RandomImages pictures(images, images);
  const BiasCorrections found = bias_corrections(graph, pictures.loader);
  EXPECT_EQ(found.images, images);
  ASSERT_EQ(found.shifts.size(), kLayers.size());
  ir::Graph corrected = graph.clone();
  passes::shift_biases(corrected, found.shifts);
  const auto wanted = means(graph, images, false), before = means(graph, images, true),
             after = means(corrected, images, true);
  for (const std::string& layer : kLayers) {
    EXPECT_GT(largest_difference(before.at(layer), wanted.at(layer)), 1e-3) << layer << ": there is nothing to correct";
    EXPECT_LT(largest_difference(after.at(layer), wanted.at(layer)), 1e-5) << layer;
  }
}

TEST(BiasCorrection, DependsNeitherOnThreadsNorOnBatches) {
  const ir::Graph graph = calibrated(coarse_network(), 40);
  testing::RandomImages pictures(16, 40), others(7, 40);
  const auto first = bias_corrections(graph, pictures.loader, {.threads = 1});
  EXPECT_EQ(first.images, 40);
  EXPECT_EQ(bias_corrections(graph, pictures.loader, {.threads = 3}).shifts, first.shifts);
  EXPECT_EQ(bias_corrections(graph, others.loader, {.threads = 2}).shifts, first.shifts);
}

TEST(BiasCorrection, TakesTheFirstImagesAndMeansThatAreKnown) {
  const ir::Graph graph = calibrated(coarse_network(), 40);
  testing::RandomImages all(16, 40), few(16, 20);
  const auto of_few = bias_corrections(graph, few.loader);
  FloatMeans known;
  const auto first = bias_corrections(graph, all.loader, {.most_images = 20, .of_float = &known});
  EXPECT_EQ(first.images, 20);
  EXPECT_EQ(first.shifts, of_few.shifts);
  EXPECT_EQ(known.runs.size(), 2u);
  EXPECT_EQ(bias_corrections(graph, all.loader, {.most_images = 20, .of_float = &known}).shifts, first.shifts);
  known.runs[0][0][0] += 1;
  EXPECT_NE(bias_corrections(graph, all.loader, {.most_images = 20, .of_float = &known}).shifts, first.shifts);
}

TEST(BiasCorrection, OfANetworkWithAFixedBatch) {
  passes::BlockBuilder b({4, 3, 16, 16});
  b.graph.add_output(b.op(ir::OpKind::kGlobalAveragePool, "pool", {b.conv(b.x, "only", 8, 3, true)}));
  const ir::Graph graph = calibrated(b.graph, 8);
  testing::RandomImages pictures(8, 8);
  EXPECT_EQ(bias_corrections(graph, pictures.loader).shifts.at("only").size(), 8u);
}

TEST(BiasCorrection, SaysWhatTheEngineCannotRun) {
  ir::Graph graph = calibrated(coarse_network(), 6);
  testing::RandomImages pictures(6);
  EXPECT_NO_THROW(bias_corrections(graph, pictures.loader));
  const auto scale = [&](const char* name, float value) {
    return graph.add_constant(name, ir::Tensor::of<float>({}, {value}));
  };
  // Codes of one scale that are read with another.
  ir::Node* last = graph.find_node("third");
  ir::Value* codes = graph.add(ir::OpKind::kQuantizeLinear, "codes", {last->input(0), scale("scale", 0.1f)});
  graph.set_input(last, 0, graph.add(ir::OpKind::kDequantizeLinear, "back", {codes, scale("other", 0.2f)}));
  graph.sort_topologically();
  ir::infer_shapes(graph);
  EXPECT_THROW(bias_corrections(graph, pictures.loader), EngineCannotRun);
}

}  // namespace
}  // namespace octet::app

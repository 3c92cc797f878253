// A network as GraphRunner::Arithmetic::kInteger computes it gives the bits that the engine gives.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "lower/lower.h"
#include "models/zoo.h"
#include "passes/block_builder.h"
#include "support/post_training.h"
#include "support/trained_look.h"
#include "train/graph_runner.h"

namespace octet::train {
namespace {

using ir::OpKind;
using Arithmetic = GraphRunner::Arithmetic;

std::vector<ir::Tensor> images(const std::vector<int64_t>& shape, int count) {
  std::mt19937 random(5);
  std::normal_distribution<float> pixel(0, 1);
  std::vector<ir::Tensor> out;
  for (int i = 0; i < count; ++i) {
    std::vector<float> values(static_cast<size_t>(ir::element_count(shape)));
    for (float& v : values) v = pixel(random);
    out.push_back(ir::Tensor::of<float>(shape, values));
  }
  return out;
}

using Outputs = std::vector<std::vector<float>>;

Outputs by_engine(const ir::Graph& graph, const std::vector<float>& image) {
  const auto plan = std::make_shared<const engine::Plan>(lower::lower(graph, {.batch = 1}));
  engine::Executor executor(plan, {});
  Outputs out;
  std::vector<float*> pointers;
  for (const int id : plan->outputs)
    pointers.push_back(out.emplace_back(static_cast<size_t>(plan->buffers[static_cast<size_t>(id)].elements())).data());
  const float* in = image.data();
  executor.run(&in, pointers.data());
  return out;
}

Outputs by_graph(const ir::Graph& graph, const std::vector<int64_t>& shape, const std::vector<float>& image,
                 Arithmetic arithmetic) {
  GraphRunner runner(graph, "cpu", arithmetic);
  Outputs out;
  for (FloatArray& array : runner.run({{shape, image}})) out.push_back(std::move(array.values));
  return out;
}

// Every scale is a tenth of a power of two, and so is the product of two by a third: then sums often lie on a border
// between two codes, where every rounding on the way counts.
void make_ties(ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->kind != OpKind::kFakeQuantize) continue;
    ir::Value* scale = node->input(1);
    std::vector<float> values = scale->constant->to_floats();
    for (float& v : values) v = 0.1f * std::exp2(std::round(std::log2(v / 0.1f)));
    graph.set_constant(scale, ir::Tensor::of<float>(scale->constant->shape(), values));
  }
}

void expect_the_bits_of_the_engine(const ir::Graph& network, const std::vector<int64_t>& shape,
                                   const quant::QuantOptions& options = {}) {
  const std::vector<ir::Tensor> pictures = images(shape, 3);
  ir::Graph graph = octet::testing::calibrated(network, options, pictures);
  make_ties(graph);
  bool differs = false;
  for (const ir::Tensor& picture : pictures) {
    const std::vector<float> image = picture.to_floats();
    const Outputs engine = by_engine(graph, image);
    EXPECT_EQ(by_graph(graph, shape, image, Arithmetic::kInteger), engine);
    differs = differs || by_graph(graph, shape, image, Arithmetic::kFloat) != engine;
  }
  EXPECT_TRUE(differs) << "so this network tells nothing";
}

class IntegerSums : public ::testing::TestWithParam<const char*> {};

TEST_P(IntegerSums, GiveTheBitsOfTheEngine) {
  models::ModelOptions options = models::default_options(GetParam());
  options.num_classes = 10;
  options.input = {3, 64, 64};
  ir::Graph network = models::build_model(options);
  octet::testing::look_trained(network);
  expect_the_bits_of_the_engine(network, {1, 3, 64, 64});
}

// With and without residuals, depthwise, with clips, pools and concatenations.
INSTANTIATE_TEST_SUITE_P(Networks, IntegerSums,
                         ::testing::Values("resnet20", "resnet18", "mobilenet_v1", "mobilenet_v2", "squeezenet",
                                           "googlenet"),
                         [](const auto& info) { return std::string(info.param); });

TEST(IntegerSumsOf, UnsignedCodesAndBiases) {
  passes::BlockBuilder b({1, 4, 12, 12});
  auto* x = b.relu(b.conv(b.x, "first", 8, 3, true), "relu");
  auto* y = b.op(OpKind::kClip, "clip",
                 {b.conv(x, "second", 8, 3, true), b.graph.add_constant("low", ir::Tensor::scalar(0.0f)),
                  b.graph.add_constant("high", ir::Tensor::scalar(2.0f))});
  y = b.relu(b.add(b.conv(y, "third", 8, 1, true), x, "sum"), "sum_relu");
  auto* up =
      b.op(OpKind::kConvTranspose, "up", {y, b.parameter("up.weight", {8, 3, 2, 2}), b.parameter("up.bias", {3})},
           {{"strides", std::vector<int64_t>{2, 2}}});
  b.graph.add_output(b.conv(up, "last", 5, 3, true));
  auto* largest = b.op(OpKind::kMaxPool, "largest", {y}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  auto* left = b.relu(b.conv(largest, "left", 4, 1, true), "left_relu");
  auto* joined = b.op(OpKind::kConcat, "joined", {left, b.conv(largest, "right", 3, 3, true)}, {{"axis", int64_t{1}}});
  joined = b.op(OpKind::kMaxPool, "of_joined", {joined}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  b.graph.add_output(b.conv(b.relu(joined, "joined_relu"), "behind_joined", 6));
  auto* pool = b.op(OpKind::kGlobalAveragePool, "pool", {y});
  b.graph.add_output(b.gemm(b.op(OpKind::kFlatten, "flatten", {pool}), "fc", 7));
  quant::QuantOptions options;
  options.placement.unsigned_activations = true;
  expect_the_bits_of_the_engine(b.graph, {1, 4, 12, 12}, options);
}

}  // namespace
}  // namespace octet::train

#include "passes/fold_batch_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/evaluate_graph.h"
#include "ir/verify.h"
#include "models/zoo.h"
#include "passes/block_builder.h"
#include "passes/place_fake_quant.h"
#include "passes/set_scales.h"
#include "support/sanitized.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Folding must equal float64 arithmetic rounded once: weights and bias of every channel, bit for bit.
void expect_folded(const ir::Graph& before, const ir::Graph& after, const std::string& node, const std::string& bn,
                   int axis) {
  const ir::Node* old_node = before.find_node(node);
  const ir::Node* norm = before.find_node(bn);
  const ir::Node* new_node = after.find_node(node);
  ASSERT_TRUE(old_node && norm && new_node);
  EXPECT_EQ(after.find_node(bn), nullptr);
  EXPECT_EQ(new_node->output()->name, norm->output()->name);
  EXPECT_EQ(new_node->input(1)->name, old_node->input(1)->name);
  const auto gamma = norm->input(1)->constant->to_floats(), beta = norm->input(2)->constant->to_floats(),
             mean = norm->input(3)->constant->to_floats(), var = norm->input(4)->constant->to_floats();
  const auto w = old_node->input(1)->constant->to_floats(), folded = new_node->input(1)->constant->to_floats();
  const ir::Shape& shape = old_node->input(1)->constant->shape();
  const int64_t groups = old_node->get_int("group", 1);
  for (size_t i = 0; i < w.size(); ++i) {
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
    size_t c = static_cast<size_t>(static_cast<int64_t>(i) / inner % shape[static_cast<size_t>(axis)]);
    if (axis == 1 && old_node->kind == OpKind::kConvTranspose)
      c += static_cast<size_t>(static_cast<int64_t>(i) / inner / shape[1] / (shape[0] / groups) * shape[1]);
    const double s = gamma[c] / std::sqrt(static_cast<double>(var[c]) + static_cast<double>(1e-5f));
    ASSERT_EQ(folded[i], static_cast<float>(w[i] * s)) << i;
  }
  const auto bias = new_node->input(2)->constant->to_floats();
  for (size_t c = 0; c < bias.size(); ++c) {
    const double s = gamma[c] / std::sqrt(static_cast<double>(var[c]) + static_cast<double>(1e-5f));
    const double b = old_node->has_input(2) ? old_node->input(2)->constant->to_floats()[c] : 0;
    ASSERT_EQ(bias[c], static_cast<float>((b - mean[c]) * s + beta[c])) << c;
  }
}

// Behind quantized weights (quant.qat_mode: with_bn): scales grow with the weights, and every code stays.
// Of quantized layers: the same weights, and scales that give them the codes that they had, but for the sign.
void expect_folded_weights(const ir::Graph& before, const ir::Graph& after, const std::string& node,
                           const std::string& bn, int axis) {
  const ir::Node &old_q = *before.find_node(node)->input(1)->producer,
                 &new_q = *after.find_node(node)->input(1)->producer;
  EXPECT_EQ(after.find_node(bn), nullptr);
  const ir::Node& norm = *before.find_node(bn);
  const auto gamma = norm.input(1)->constant->to_floats();
  const auto w = old_q.input(0)->constant->to_floats(), folded = new_q.input(0)->constant->to_floats();
  const auto s = old_q.input(1)->constant->to_floats(), t = new_q.input(1)->constant->to_floats();
  const ir::Shape& shape = new_q.input(0)->constant->shape();
  ASSERT_EQ(t.size(), static_cast<size_t>(shape[static_cast<size_t>(axis)]));
  EXPECT_EQ(new_q.get_int("axis"), axis);
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d) inner *= shape[d];
  for (size_t i = 0; i < w.size(); ++i) {
    const size_t c = static_cast<size_t>(static_cast<int64_t>(i) / inner % shape[static_cast<size_t>(axis)]);
    const float code = std::nearbyint(w[i] / s[s.size() == 1 ? 0 : c]) * (gamma[c] < 0 ? -1.0f : 1.0f);
    ASSERT_NEAR(std::nearbyint(folded[i] / t[c]), code,
                std::abs(std::remainder(w[i] / s[s.size() == 1 ? 0 : c], 1)) > 0.499 ? 1 : 0)
        << node << " " << i;
  }
}

TEST(FoldBatchNormTest, QuantizedWeightsKeepTheirCodes) {
  for (const bool per_tensor : {false, true}) {
    BlockBuilder b;
    auto* y = b.relu(b.bn(b.conv(b.x, "conv1", 6, 3), "bn1"), "relu");
    b.graph.add_output(b.bn(b.op(OpKind::kConvTranspose, "up", {y, b.parameter("up.weight", {6, 5, 2, 2})}), "bn2"));
    place_fake_quant(b.graph, {.weights_per_tensor = per_tensor});
    quant::CalibrationSet seen(b.graph);
    for (const std::string& name : seen.names()) seen.observe(name, b.random(100));
    set_scales(b.graph, seen.ranges());
    const ir::Graph before = b.graph.clone();
    EXPECT_EQ(fold_batch_norm(b.graph), 2);
    ir::verify(b.graph);
    ir::infer_shapes(b.graph);
    expect_folded_weights(before, b.graph, "conv1", "bn1", 0);
    expect_folded_weights(before, b.graph, "up", "bn2", 1);
    EXPECT_EQ(fold_batch_norm(b.graph), 0);
    // The network computes the same but for the last bits of float32.
    const ir::Tensor image = ir::Tensor::of<float>({1, 4, 8, 8}, b.random(256));
    const std::vector<float> want = ir::evaluate_graph(before, {image})[0].to_floats(),
                             got = ir::evaluate_graph(b.graph, {image})[0].to_floats();
    double signal = 0, noise = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const double d = static_cast<double>(want[i]) - static_cast<double>(got[i]);
      signal += static_cast<double>(want[i]) * static_cast<double>(want[i]), noise += d * d;
    }
    EXPECT_LT(noise, 1e-6 * signal) << per_tensor;
  }
}

TEST(FoldBatchNormTest, QuantizedWeightsThatCannotBeRescaledStay) {
  const auto folds = [](auto&& change) {
    BlockBuilder b;
    b.graph.add_output(b.bn(b.conv(b.x, "conv", 6, 3), "bn"));
    place_fake_quant(b.graph);
    change(b.graph, *b.graph.find_node("conv.weight/fake_quantize"));
    return fold_batch_norm(b.graph);
  };
  EXPECT_EQ(folds([](ir::Graph&, ir::Node&) {}), 1);
  EXPECT_EQ(folds([](ir::Graph&, ir::Node& q) { q.attributes["qmin"] = int64_t{-128}; }), 0)
      << "a channel of another sign would lose its -128";
  EXPECT_EQ(folds([](ir::Graph&, ir::Node& q) {
              q.input(2)->constant = ir::Tensor::of<int8_t>({6}, std::vector<int8_t>{0, 0, 1, 0, 0, 0});
            }),
            0);
  EXPECT_EQ(
      folds([](ir::Graph& graph, ir::Node& q) { graph.add_output(graph.add(OpKind::kAbs, "reader", {q.output()})); }),
      0)
      << "somebody else reads them";
}

TEST(FoldBatchNormTest, ConvWithAndWithoutBias) {
  BlockBuilder b;
  auto* y = b.relu(b.bn(b.conv(b.x, "conv1", 6, 3), "bn1"), "relu");
  b.graph.add_output(b.bn(b.conv(y, "conv2", 5, 1, true), "bn2"));
  const ir::Graph before = b.graph.clone();
  EXPECT_EQ(fold_batch_norm(b.graph), 2);
  ir::verify(b.graph);
  expect_folded(before, b.graph, "conv1", "bn1", 0);
  expect_folded(before, b.graph, "conv2", "bn2", 0);
  EXPECT_EQ(b.graph.outputs()[0]->name, "bn2");
  EXPECT_EQ(b.graph.find_node("conv1")->input(2)->name, "conv1.bias");
  EXPECT_TRUE(b.graph.find_value("conv1.bias")->trainable);
  EXPECT_EQ(b.graph.find_value("bn1.running_var"), nullptr);
}

TEST(FoldBatchNormTest, GroupedConvTransposeAndBothGemmLayouts) {
  BlockBuilder b;
  auto* w = b.parameter("up.weight", {4, 3, 2, 2});
  b.graph.add_output(b.bn(b.op(OpKind::kConvTranspose, "up", {b.x, w}, {{"group", int64_t{2}}}), "bn_up"));
  BlockBuilder g({2, 4});
  auto* t = g.bn(g.gemm(g.x, "fc1", 6), "bn1");
  g.graph.add_output(g.bn(g.op(OpKind::kGemm, "fc2", {t, g.parameter("fc2.weight", {6, 3})}), "bn2"));
  const ir::Graph up = b.graph.clone(), fc = g.graph.clone();
  EXPECT_EQ(fold_batch_norm(b.graph), 1);
  EXPECT_EQ(fold_batch_norm(g.graph), 2);
  ir::verify(b.graph);
  ir::verify(g.graph);
  expect_folded(up, b.graph, "up", "bn_up", 1);
  expect_folded(fc, g.graph, "fc1", "bn1", 0);
  expect_folded(fc, g.graph, "fc2", "bn2", 1);
}

TEST(FoldBatchNormTest, LeavesWhatCannotBeFolded) {
  BlockBuilder b;
  auto* pre = b.bn(b.x, "pre_activation");
  auto* shared = b.conv(b.relu(pre, "relu"), "shared", 4);
  auto* normed = b.bn(shared, "bn");
  b.graph.add_output(b.add(normed, shared, "add"));
  EXPECT_EQ(fold_batch_norm(b.graph), 0);
  EXPECT_NE(b.graph.find_node("pre_activation"), nullptr);
  EXPECT_NE(b.graph.find_node("bn"), nullptr);
}

// A file may state an input of any size; numbers for its channels would not fit into memory.
TEST(FoldBatchNormTest, LeavesArithmeticBehindWhatHasNoWeights) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, int64_t{1} << 40}});
  ir::Value* one = g.add_constant("one", ir::Tensor::scalar(1.0f));
  g.add_output(g.add(ir::OpKind::kAdd, "y", {g.add(ir::OpKind::kRelu, "relu", {x}), one}));
  ir::infer_shapes(g);
  EXPECT_EQ(fold_batch_norm(g), 0);
}

TEST(FoldBatchNormTest, CopiesWeightsThatAnotherNodeUses) {
  BlockBuilder b;
  auto* y = b.bn(b.conv(b.x, "a", 4), "bn");
  auto* shared = b.graph.find_value("a.weight");
  const ir::Tensor original = *shared->constant;
  b.graph.add_output(b.op(OpKind::kConv, "b", {y, shared}));
  EXPECT_EQ(fold_batch_norm(b.graph), 1);
  ir::verify(b.graph);
  EXPECT_EQ(b.graph.find_node("b")->input(1)->constant->to_floats(), original.to_floats());
  EXPECT_NE(b.graph.find_node("a")->input(1), b.graph.find_node("b")->input(1));
}

TEST(FoldBatchNormTest, FoldsTwoInARow) {
  BlockBuilder b;
  b.graph.add_output(b.bn(b.bn(b.conv(b.x, "conv", 4), "bn1"), "bn2"));
  EXPECT_EQ(fold_batch_norm(b.graph), 2);
  ASSERT_EQ(b.graph.nodes().size(), 1u);
  EXPECT_EQ(b.graph.outputs()[0]->name, "bn2");
}

TEST(FoldBatchNormTest, NamesDamagedStatistics) {
  BlockBuilder b;
  b.graph.add_output(b.bn(b.conv(b.x, "conv", 4), "bn"));
  auto* variance = b.graph.find_value("bn.running_var");
  variance->constant = ir::Tensor::of<float>({4}, std::vector<float>{1, -1, 1, 1});
  EXPECT_THAT([&] { fold_batch_norm(b.graph); },
              ThrowsMessage<UserError>(HasSubstr("folding BatchNormalization 'bn' into Conv 'conv'")));
}

TEST(FoldBatchNormTest, LeavesNoBatchNormBehindAConvolutionOfTheZoo) {
  for (const models::ModelInfo& info : models::all_models()) {
    if (info.parameters > (testing::kSanitized ? 6'000'000 : 42'000'000)) continue;  // nothing new
    ir::Graph graph = models::build_model(models::default_options(info.name));
    const auto before = ir::type_string(graph.outputs()[0]->type);
    const bool normalizes = info.name != "squeezenet" && !info.name.starts_with("vit") &&
                            info.name != "convnext_tiny" && info.name != "swin_t";
    EXPECT_EQ(fold_batch_norm(graph) > 0, normalizes) << info.name;
    ir::verify(graph);
    // Pre-activation keeps those of its sums: before each of 16 blocks, and of the last. Dense blocks keep those of
    // what they join: before each layer, in the transitions, and the last.
    const int standalone = info.name == "resnet50_v2" ? 16 + 1 : info.name == "densenet121" ? 58 + 3 + 1 : 0;
    const auto is_norm = [](const auto& node) { return node->kind == OpKind::kBatchNormalization; };
    EXPECT_EQ(std::count_if(graph.nodes().begin(), graph.nodes().end(), is_norm), standalone) << info.name;
    EXPECT_EQ(ir::type_string(graph.outputs()[0]->type), before);
  }
}

}  // namespace
}  // namespace octet::passes

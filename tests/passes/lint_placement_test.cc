#include "quant/lint_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/zoo.h"
#include "passes/block_builder.h"
#include "passes/fold_batch_norm.h"
#include "passes/pipelines.h"
#include "passes/place_fake_quant.h"
#include "passes/set_scales.h"

namespace octet::passes {
namespace {

using ir::OpKind;

// All quantizers frozen with different scales, so that only what a test is about is reported.
void freeze(ir::Graph& graph) {
  std::map<std::string, quant::Range> ranges;
  float amax = 1;
  for (const auto& node : graph.nodes())
    if (node->kind == OpKind::kFakeQuantize) ranges[node->input(0)->name].amax = amax += 1;
  set_scales(graph, ranges);
}

std::string lint_after_placement(ir::Graph& graph, const quant::PlacementOptions& options = {}) {
  place_fake_quant(graph, options);
  freeze(graph);
  return quant::lint_text(quant::lint_placement(graph));
}

// A quantizer of `value` for `reader`, as someone else might have placed it.
void quantize(ir::Graph& graph, const std::string& value, const std::string& reader, size_t input) {
  ir::Node* node = graph.find_node(reader);
  ir::Value* scale = graph.add_constant("", ir::Tensor::scalar<float>(0.1f));
  ir::Value* zero = graph.add_constant("", ir::Tensor::scalar<int8_t>(0));
  const std::string name = graph.unique_name(value + "/q");
  ir::Node* q = graph.add_node(OpKind::kFakeQuantize, name, {graph.find_value(value), scale, zero}, {name}, {}, node);
  ir::infer_node(*q);
  graph.set_input(node, input, q->output());
}

void residual_block(BlockBuilder& b) {
  auto* x = b.relu(b.x, "relu");
  auto* y = b.conv(b.relu(b.conv(x, "conv1", 4), "relu1"), "conv2", 4);
  b.graph.add_output(b.conv(b.relu(b.add(y, x, "add"), "relu2"), "conv3", 4));
}

TEST(LintPlacementTest, OwnPlacementsAreClean) {
  BlockBuilder b;
  residual_block(b);
  EXPECT_EQ(lint_after_placement(b.graph), "");
}

TEST(LintPlacementTest, NamesFloatLayers) {
  BlockBuilder b;
  residual_block(b);
  EXPECT_EQ(lint_after_placement(b.graph, {.exclude = {{.name = "conv1"}}}),
            "float_layer  Conv 'conv1' runs in float: neither its input 'relu' nor its weights 'conv1.weight' are "
            "quantized\n");
  b.graph.set_input(b.graph.find_node("conv2"), 1, b.graph.find_value("conv2.weight"));
  EXPECT_THAT(quant::lint_text(quant::lint_placement(b.graph)),
              ::testing::HasSubstr("Conv 'conv2' runs in float: its weights 'conv2.weight' are not quantized"));
}

TEST(LintPlacementTest, ExplainsBrokenAdds) {
  BlockBuilder b;
  residual_block(b);
  place_fake_quant(b.graph);
  freeze(b.graph);
  b.graph.set_input(b.graph.find_node("add"), 1, b.graph.find_value("relu"));
  EXPECT_EQ(
      quant::lint_text(quant::lint_placement(b.graph)),
      "float_island  float island of 3 nodes between quantized ones (Relu 'relu', Add 'add', Relu 'relu2'): its inputs "
      "are "
      "dequantized and its result is quantized again\n"
      "float_residual  Add 'add': the residual 'relu' is float, so the output of Conv 'conv2' stays float; quantize "
      "the residual\n");
  quantize(b.graph, "relu", "add", 1);
  quantize(b.graph, "conv2", "add", 0);
  const auto notes = quant::lint_placement(b.graph);
  EXPECT_THAT(
      quant::lint_text(notes),
      ::testing::HasSubstr("split_add  Add 'add': the quantizer of 'conv2' separates it from Conv 'conv2', so the two "
                           "cannot be fused; quantize only the other operand 'relu/q'"));
  EXPECT_THAT(quant::lint_text(notes), ::testing::HasSubstr("quantized_twice  tensor 'relu' has quantizers with 2"));
}

TEST(LintPlacementTest, FindsFloatIslandsButNotSwishOrHeads) {
  BlockBuilder b;
  auto* y = b.silu(b.conv(b.x, "conv1", 4), "swish");
  y = b.op(OpKind::kExp, "exp", {b.op(OpKind::kSqrt, "sqrt", {b.conv(y, "conv2", 4)})});
  y = b.conv(y, "conv3", 4);
  b.graph.add_output(b.op(OpKind::kSoftmax, "softmax", {y}));
  EXPECT_EQ(lint_after_placement(b.graph),
            "float_island  float island of 2 nodes between quantized ones (Sqrt 'sqrt', Exp 'exp'): its inputs are "
            "dequantized and its result is quantized again\n");
}

// The compiler moves the quantizer before it.
TEST(LintPlacementTest, ANearestResizeIsNoIsland) {
  for (const bool nearest : {true, false}) {
    BlockBuilder b;
    auto* scales = b.graph.add_constant("scales", ir::Tensor::of<float>({4}, std::vector<float>{1, 1, 2, 2}));
    auto* up = b.op(OpKind::kResize, "up", {b.relu(b.conv(b.x, "conv1", 4), "relu"), nullptr, scales},
                    {{"mode", std::string(nearest ? "nearest" : "linear")}});
    b.graph.add_output(b.conv(up, "conv2", 4));
    EXPECT_EQ(lint_after_placement(b.graph),
              nearest ? ""
                      : "float_island  float island of 1 node between quantized ones (Resize 'up'): its inputs are "
                        "dequantized and its result is quantized again\n");
  }
}

TEST(LintPlacementTest, PoolsConcatsWeightsAndCalibration) {
  BlockBuilder b;
  auto* a = b.relu(b.conv(b.x, "conv1", 4), "a");
  auto* c = b.relu(b.conv(b.x, "conv2", 4), "c");
  auto* concat = b.op(OpKind::kConcat, "concat", {a, c}, {{"axis", int64_t{1}}});
  auto* pool = b.op(OpKind::kGlobalAveragePool, "pool", {concat});
  b.graph.add_output(b.conv(pool, "conv3", 2));
  place_fake_quant(b.graph, {.exclude = {{.name = "pool"}}});
  EXPECT_THAT(quant::lint_text(quant::lint_placement(b.graph)),
              ::testing::HasSubstr("not_calibrated  5 quantizers still observe (the first is 'input/fake_quantize')"));
  freeze(b.graph);
  quantize(b.graph, "a", "concat", 0);
  quantize(b.graph, "c", "concat", 1);
  b.graph.find_node("a/q")->input(1)->constant = ir::Tensor::scalar<float>(0.3f);
  b.graph.set_input(b.graph.find_node("conv1"), 1, b.graph.find_value("conv1.weight"));
  quantize(b.graph, "conv1.weight", "conv1", 1);
  b.graph.remove_dead();
  EXPECT_EQ(
      quant::lint_text(quant::lint_placement(b.graph)),
      "per_tensor_weights  Conv 'conv1' has one scale for all its weights; one for each output channel is more "
      "accurate at the same speed\n"
      "concat_requantizes  Concat 'concat' joins tensors with 2 different scales, so it has to requantize; a unified "
      "scale makes it a copy\n");
  b.graph.set_input(concat->producer, 0, b.graph.find_value("a"));
  EXPECT_THAT(quant::lint_text(quant::lint_placement(b.graph)),
              ::testing::HasSubstr("float_pool  GlobalAveragePool 'pool' averages the float tensor 'concat'"));
}

TEST(LintPlacementTest, FloatGraphsHaveNoNotes) {
  BlockBuilder b;
  residual_block(b);
  EXPECT_TRUE(quant::lint_placement(b.graph).empty());
}

TEST(LintPlacementTest, TheZooIsClean) {
  for (const char* arch : {"resnet20", "resnet18", "mobilenet_v2", "efficientnet_b0", "mobilenet_v3_small"}) {
    ir::Graph graph = models::build_model(models::default_options(arch));
    run_pipeline(graph, preparation_passes(/*keep_dropout=*/false));
    EXPECT_EQ(lint_after_placement(graph), "") << arch;
  }
}

}  // namespace
}  // namespace octet::passes

// Export followed by import gives the same graph.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/infer.h"
#include "models/zoo.h"
#include "numerics/quantize.h"
#include "onnx/export.h"
#include "onnx/graph_compare.h"
#include "onnx/import.h"

namespace octet::onnx {
namespace {

using ir::Graph;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

Graph round_trip(const Graph& graph, const ExportOptions& options = {}) {
  return import_bytes(export_bytes(graph, options), {});
}

class ZooRoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(ZooRoundTrip, KeepsTheGraph) {
  models::ModelOptions options = models::default_options(GetParam());
  options.num_classes = 10;
  const Graph graph = models::build_model(options);
  for (const int opset : {13, 19, 21})
    EXPECT_EQ(first_difference(graph, round_trip(graph, {.opset = opset})), "") << "opset " << opset;
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooRoundTrip, ::testing::Values("resnet18", "mobilenet_v2", "efficientnet_b0"),
                         [](const auto& info) { return info.param; });

// Tensors of one symbolic size have one memory in ONNX Runtime, so rows of tokens must not be called the batch.
TEST(OpenSizes, OnlyTheBatchIsCalledSo) {
  const std::string bytes = export_bytes(models::build_model({.arch = "vit_tiny", .input = {3, 32, 32}}));
  EXPECT_NE(bytes.find("batch"), std::string::npos);
  EXPECT_NE(bytes.find("blocks.0.add1_size0"), std::string::npos);
  EXPECT_EQ(bytes.find("pos_add_size0"), std::string::npos);
  EXPECT_EQ(bytes.find("logits_size0"), std::string::npos);
}

// input -> FakeQuantize -> Conv(FakeQuantize(weight)) -> output
struct QuantizedConv {
  std::vector<float> weight_scales = {0.5f, 0.25f};
  std::vector<float> weights = {63.5f, -63.5f, 1.2f, 0, 31.75f, -3.3f, 0.125f, -31.75f};
  int64_t activation_qmin = -128, activation_qmax = 127;
  int64_t weight_qmin = -127;
  std::string state = ir::kFrozen;
  std::string activation_name = "input/fq";

  Graph build() const {
    Graph g;
    g.name = "quantized";
    g.metadata = {{"stage", "qat"}, {"spec", "line one\nline two"}};
    Value* x = g.add_input("input", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 4, 5, 5}});
    const bool is_unsigned = activation_qmin >= 0;
    Value* scale = g.add_constant("input.scale", Tensor::scalar(0.1f));
    Value* zero = g.add_constant("input.zero", is_unsigned ? Tensor::scalar<uint8_t>(3) : Tensor::scalar<int8_t>(3));
    Value* fq = g.add(OpKind::kFakeQuantize, activation_name, {x, scale, zero},
                      {{"qmin", activation_qmin}, {"qmax", activation_qmax}, {"state", state}});
    Value* w = g.add_constant("conv.weight", Tensor::of<float>({2, 4, 1, 1}, weights), true);
    Value* ws = g.add_constant("conv.weight.scale", Tensor::of<float>({2}, weight_scales));
    Value* wz = g.add_constant("conv.weight.zero", Tensor::of<int8_t>({2}, std::vector<int8_t>{0, 0}));
    Value* wq = g.add(OpKind::kFakeQuantize, "conv.weight/fq", {w, ws, wz},
                      {{"axis", int64_t{0}}, {"qmin", weight_qmin}, {"qmax", int64_t{127}}, {"state", state}});
    Value* bias = g.add_constant("conv.bias", Tensor::of<float>({2}, std::vector<float>{0.1f, -0.2f}), true);
    g.add_output(g.add(OpKind::kConv, "conv", {fq, wq, bias}, {{"kernel_shape", std::vector<int64_t>{1, 1}}}));
    return g;
  }
};

// The same graph with the weights on the grid that their scales span.
Graph with_quantized_weights(const QuantizedConv& options) {
  QuantizedConv on_grid = options;
  for (size_t i = 0; i < on_grid.weights.size(); ++i)
    on_grid.weights[i] = numerics::fake_quantize(
        options.weights[i], {options.weight_scales[i / 4], 0, static_cast<int>(options.weight_qmin), 127});
  return on_grid.build();
}

TEST(RoundTrip, FloatWeightsStay) {
  const Graph graph = QuantizedConv().build();
  for (const int opset : {13, 19, 20, 21})
    EXPECT_EQ(first_difference(graph, round_trip(graph, {.opset = opset, .quantize_weights = false})), "");
}

TEST(RoundTrip, QuantizedWeightsAreExactlyIdempotent) {
  const QuantizedConv options;
  const Graph once = round_trip(options.build());
  EXPECT_EQ(first_difference(with_quantized_weights(options), once), "");
  EXPECT_EQ(first_difference(once, round_trip(once)), "");
  EXPECT_EQ(export_bytes(once), export_bytes(round_trip(once)));
}

TEST(RoundTrip, NarrowRangeOfWeightsNeedsNoMetadata) {
  const std::string bytes = export_bytes(QuantizedConv().build());
  EXPECT_EQ(bytes.find("octet.fake_quantize"), std::string::npos);
}

TEST(RoundTrip, WideRangeOfWeightsSurvives) {
  for (const bool reaches_lowest : {false, true}) {
    QuantizedConv options;
    options.weight_qmin = -128;
    if (reaches_lowest) options.weights[1] = -64;
    EXPECT_EQ(first_difference(with_quantized_weights(options), round_trip(options.build())), "");
  }
}

TEST(RoundTrip, NarrowRangeSurvivesWeightsThatWouldReachTheLowestCode) {
  QuantizedConv options;
  options.weights[1] = -100;  // clipped to -127 steps
  const Graph graph = options.build();
  EXPECT_EQ(first_difference(graph, round_trip(graph, {.quantize_weights = false})), "");
  EXPECT_EQ(first_difference(with_quantized_weights(options), round_trip(graph)), "");
}

TEST(RoundTrip, EveryStateAndRangeSurvives) {
  for (const char* state : ir::kQuantizerStates) {
    for (const auto& [low, high] : {std::pair{-128, 127}, {-127, 127}, {0, 255}, {0, 127}, {-8, 7}}) {
      QuantizedConv options;
      options.state = state;
      options.activation_qmin = low;
      options.activation_qmax = high;
      const Graph graph = options.build();
      EXPECT_EQ(first_difference(graph, round_trip(graph, {.quantize_weights = false})), "") << state << low;
    }
  }
}

TEST(RoundTrip, ObservingWeightsAreNeverQuantized) {
  QuantizedConv options;
  options.state = ir::kObserving;
  const Graph graph = options.build();
  EXPECT_EQ(first_difference(graph, round_trip(graph, {.quantize_weights = true})), "");
}

TEST(RoundTrip, NamesMayHoldAnything) {
  QuantizedConv options;
  options.activation_qmax = 100;  // noted in the metadata by name
  for (const char* name : {"a b", "line\nend", "back\\slash\\n", " leading", "ünïcode/ß:0"}) {
    options.activation_name = name;
    const Graph graph = options.build();
    EXPECT_EQ(first_difference(graph, round_trip(graph, {.quantize_weights = false})), "") << name;
  }
}

TEST(RoundTrip, SharedScalesAndZeroPointsStayUsable) {
  Graph g;
  g.name = "shared";
  Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{2, 3}});
  Value* scale = g.add_constant("scale", Tensor::scalar(0.5f));
  Value* zero = g.add_constant("zero", Tensor::scalar<int32_t>(0));
  Value* a = g.add(OpKind::kFakeQuantize, "a", {x, scale, zero});
  Value* b = g.add(OpKind::kFakeQuantize, "b", {a, scale, zero}, {{"qmin", int64_t{0}}, {"qmax", int64_t{255}}});
  g.add_output(g.add(OpKind::kMul, "c", {b, scale}));
  const Graph back = round_trip(g);
  ASSERT_EQ(back.nodes().size(), 3u);
  EXPECT_EQ(back.find_node("a")->input(1)->constant->to_floats(), std::vector<float>{0.5f});
  EXPECT_EQ(back.find_node("a")->input(2)->type.data_type, ir::DataType::kInt8);
  EXPECT_EQ(back.find_node("b")->input(2)->type.data_type, ir::DataType::kUInt8);
  EXPECT_EQ(back.find_node("b")->get_int("qmax"), 255);
  EXPECT_EQ(back.find_node("c")->input(1)->name, "scale");
}

TEST(RoundTrip, ScalarsKeepTheirShape) {
  Graph g;
  g.name = "scalar";
  g.add_output(g.add(OpKind::kRelu, "y", {g.add_input("x", {ir::DataType::kFloat32, ir::Shape{}})}));
  EXPECT_EQ(first_difference(g, round_trip(g)), "");
}

TEST(Export, RefusesWhatAnOpsetCannotExpress) {
  Graph g;
  Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 3, 8, 8}});
  Value* sizes = g.add_constant("sizes", Tensor::of<int64_t>({2}, std::vector<int64_t>{4, 4}));
  const auto node = g.add_node(OpKind::kResize, "shrink", {x, nullptr, nullptr, sizes}, {"y"},
                               {{"axes", std::vector<int64_t>{2, 3}}});
  ir::infer_node(*node);
  g.add_output(node->output());
  EXPECT_EQ(first_difference(g, round_trip(g)), "");
  try {
    export_bytes(g, {.opset = 13});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("node 'shrink' (Resize): attribute 'axes' cannot be written in opset 13"),
              std::string::npos)
        << e.what();
  }
  EXPECT_THROW(export_bytes(g, {.opset = 18}), UserError);
}

TEST(Export, OldOpsetsGetEqualForms) {
  Graph g;
  g.name = "forms";
  Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 6, 8, 8}});
  Value* swish = g.add(OpKind::kHardSwish, "swish", {x});
  Value* axes = g.add_constant("axes", Tensor::of<int64_t>({2}, std::vector<int64_t>{2, 3}));
  Value* mean = g.add(OpKind::kReduceMean, "mean", {swish, axes}, {{"keepdims", int64_t{0}}});
  ir::Node* split =
      g.add_node(OpKind::kSplit, "split", {mean}, {"l", "r"}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}});
  ir::infer_node(*split);
  g.add_output(g.add(OpKind::kSub, "difference", {split->output(0), split->output(1)}));
  EXPECT_EQ(first_difference(g, round_trip(g)), "");
  const Graph old = round_trip(g, {.opset = 13});
  EXPECT_EQ(old.outputs()[0]->type, g.outputs()[0]->type);
  EXPECT_EQ(old.find_node("swish")->kind, OpKind::kMul);
  EXPECT_EQ(old.find_node("mean")->input(1)->constant->to_ints(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(old.find_node("split")->input(1)->constant->to_ints(), (std::vector<int64_t>{3, 3}));
}

}  // namespace
}  // namespace octet::onnx

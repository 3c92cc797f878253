// QLinear operators and operators on codes become a graph of FakeQuantize nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "onnx/expand_qlinear.h"
#include "onnx/import.h"
#include "onnx/out_model.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Graph;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
Tensor filled(Shape shape, T value) {
  const std::vector<T> values(static_cast<size_t>(ir::element_count(shape)), value);
  return Tensor::of<T>(std::move(shape), values);
}

struct QLinearDraft : OutModel {
  explicit QLinearDraft(Shape input, int version = 13) {
    opset = version;
    graph_name = "draft";
    inputs.push_back({"x", {DataType::kFloat32, std::move(input)}});
    outputs.push_back({"y", {DataType::kFloat32, std::nullopt}});
    scale("s1", 0.1f).zero("z1", 3).scale("s2", 0.2f).zero("z2", 5);
    node("QuantizeLinear", {"x", "s1", "z1"}, {"q"});
  }
  QLinearDraft& node(const std::string& op, std::vector<std::string> in, std::vector<std::string> out,
                     ir::Attributes attributes = {}) {
    nodes.push_back({op, "n_" + out[0], std::move(in), std::move(out), std::move(attributes)});
    return *this;
  }
  QLinearDraft& constant(const std::string& name, Tensor tensor) {
    initializers.emplace_back(name, std::move(tensor));
    return *this;
  }
  QLinearDraft& scale(const std::string& name, float value) { return constant(name, Tensor::scalar(value)); }
  QLinearDraft& zero(const std::string& name, uint8_t value) { return constant(name, Tensor::scalar(value)); }
  Graph import() const { return import_bytes(serialize(*this), {}); }
  std::string error() const {
    try {
      import();
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  }
};

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) out.push_back(node->info().name);
  return out;
}

TEST(QLinear, ConvIsAConvBetweenQuantizers) {
  const Graph g = QLinearDraft({1, 2, 4, 4})
                      .constant("w", filled<uint8_t>({3, 2, 1, 1}, 130))
                      .constant("ws", Tensor::of<float>({3}, std::vector<float>{0.5f, 0.25f, 2.0f}))
                      .constant("wz", filled<uint8_t>({3}, 128))
                      .constant("b", Tensor::of<int32_t>({3}, std::vector<int32_t>{7, -8, 9}))
                      .node("QLinearConv", {"q", "s1", "z1", "w", "ws", "wz", "s2", "z2", "b"}, {"c"},
                            {{"kernel_shape", std::vector<int64_t>{1, 1}}})
                      .node("DequantizeLinear", {"c", "s2", "z2"}, {"y"})
                      .import();
  EXPECT_THAT(op_names(g), ElementsAre("FakeQuantize", "FakeQuantize", "Conv", "FakeQuantize"));
  const ir::Node* conv = nullptr;
  for (const auto& node : g.nodes())
    if (node->kind == OpKind::kConv) conv = node.get();
  const float s = 0.1f;
  EXPECT_THAT(conv->input(2)->constant->to_floats(), ElementsAre(7 * (s * 0.5f), -8 * (s * 0.25f), 9 * (s * 2.0f)));
  const ir::Node* weights = conv->input(1)->producer;
  EXPECT_EQ(weights->get_int("axis"), 0);
  EXPECT_EQ(weights->get_int("qmin"), 0);
  EXPECT_THAT(weights->input(0)->constant->to_floats(), ElementsAre(1, 1, 0.5f, 0.5f, 4, 4));
  EXPECT_EQ(g.outputs()[0]->name, "y");
}

TEST(QLinear, MatMulTakesScalesOfColumns) {
  const Graph g = QLinearDraft({4, 2})
                      .constant("w", filled<int8_t>({2, 3}, -4))
                      .constant("ws", Tensor::of<float>({3}, std::vector<float>{0.5f, 0.25f, 2.0f}))
                      .constant("wz", filled<int8_t>({3}, 0))
                      .node("QLinearMatMul", {"q", "s1", "z1", "w", "ws", "wz", "s2", "z2"}, {"c"})
                      .node("DequantizeLinear", {"c", "s2", "z2"}, {"y"})
                      .import();
  EXPECT_THAT(op_names(g), ElementsAre("FakeQuantize", "FakeQuantize", "MatMul", "FakeQuantize"));
  for (const auto& node : g.nodes())
    if (node->kind == OpKind::kMatMul) {
      EXPECT_EQ(node->input(1)->producer->get_int("axis"), 1);
    }
}

TEST(QLinear, OperatorsOnCodesAreLifted) {
  const Graph g = QLinearDraft({1, 2, 4, 4})
                      .constant("shape", Tensor::of<int64_t>({2}, std::vector<int64_t>{1, 8}))
                      .node("MaxPool", {"q"}, {"m"},
                            {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}})
                      .node("Reshape", {"m", "shape"}, {"r"})
                      .node("DequantizeLinear", {"r", "s1", "z1"}, {"y"})
                      .import();
  EXPECT_THAT(op_names(g), ElementsAre("FakeQuantize", "MaxPool", "FakeQuantize", "Reshape", "FakeQuantize"));
  for (const auto& node : g.nodes()) EXPECT_EQ(node->output()->type.data_type, DataType::kFloat32);
}

TEST(QLinear, PadOfCodesFillsWithTheNumberOfTheCode) {
  const Graph g = QLinearDraft({1, 2, 4, 4})
                      .constant("pads", Tensor::of<int64_t>({8}, std::vector<int64_t>{0, 0, 1, 1, 0, 0, 1, 1}))
                      .zero("fill", 13)
                      .node("Pad", {"q", "pads", "fill"}, {"p"})
                      .node("DequantizeLinear", {"p", "s1", "z1"}, {"y"})
                      .import();
  for (const auto& node : g.nodes())
    if (node->kind == OpKind::kPad) {
      EXPECT_THAT(node->input(2)->constant->to_floats(), ElementsAre(10 * 0.1f));
    }
}

TEST(QLinear, DynamicQuantizationIsRefused) {
  EXPECT_THAT(QLinearDraft({2, 2}).node("MatMulInteger", {"q", "q"}, {"y"}).error(),
              ::testing::AllOf(HasSubstr("'n_y' (MatMulInteger)"), HasSubstr("quantized dynamically")));
}

// --- operators of com.microsoft, by their rewrites

struct FakeContext : UpgradeContext {
  std::map<std::string, Tensor> constants;
  std::optional<Shape> shape(const std::string&) override { return Shape{1, 4}; }
  DataType data_type(const std::string&) override { return DataType::kUInt8; }
  std::optional<Tensor> constant(const std::string& value) override {
    const auto it = constants.find(value);
    return it == constants.end() ? std::nullopt : std::optional(it->second);
  }
  std::string add_constant(const std::string& hint, Tensor tensor) override {
    constants[hint] = std::move(tensor);
    return hint;
  }
  std::string fresh_name(const std::string& hint) override { return hint; }
};

std::vector<std::string> expanded(const std::string& op, std::vector<std::string> inputs, ir::Attributes attributes,
                                  FakeContext context = {}) {
  EXPECT_TRUE(is_qlinear("com.microsoft", op)) << op;
  std::vector<std::string> out;
  for (const SourceNode& node : expand_qlinear({op, "n", std::move(inputs), {"y"}, std::move(attributes)}, context))
    out.push_back(node.op);
  return out;
}

TEST(QLinear, OperatorsOfOnnxRuntime) {
  EXPECT_THAT(expanded("QLinearAdd", {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {}),
              ElementsAre("DequantizeLinear", "DequantizeLinear", "Add", "QuantizeLinear"));
  EXPECT_THAT(expanded("QLinearSigmoid", {"x", "xs", "xz", "ys", "yz"}, {}),
              ElementsAre("DequantizeLinear", "Sigmoid", "QuantizeLinear"));
  EXPECT_THAT(expanded("QLinearGlobalAveragePool", {"x", "xs", "xz", "ys", "yz"}, {{"channels_last", int64_t{0}}}),
              ElementsAre("DequantizeLinear", "GlobalAveragePool", "QuantizeLinear"));
  EXPECT_THAT(expanded("QLinearConcat", {"ys", "yz", "a", "as", "az", "b", "bs", "bz"}, {{"axis", int64_t{1}}}),
              ElementsAre("DequantizeLinear", "DequantizeLinear", "Concat", "QuantizeLinear"));
  EXPECT_THAT(expanded("QLinearSoftmax", {"x", "xs", "xz", "ys", "yz"}, {{"opset", int64_t{13}}}),
              ElementsAre("DequantizeLinear", "Softmax", "QuantizeLinear"));
  FakeContext context;
  context.constants = {{"c", Tensor::of<int32_t>({3}, std::vector<int32_t>{1, 2, 3})},
                       {"as", Tensor::scalar(0.5f)},
                       {"bs", Tensor::scalar(0.25f)}};
  EXPECT_THAT(expanded("QGemm", {"a", "as", "az", "b", "bs", "bz", "c"}, {}, context),
              ElementsAre("DequantizeLinear", "DequantizeLinear", "DequantizeLinear", "Gemm"));
  EXPECT_THROW(expanded("QLinearGlobalAveragePool", {"x", "xs", "xz", "ys", "yz"}, {{"channels_last", int64_t{1}}}),
               UserError);
  EXPECT_THROW(
      expanded("QLinearSoftmax", {"x", "xs", "xz", "ys", "yz"}, {{"opset", int64_t{11}}, {"axis", int64_t{0}}}),
      UserError);
}

}  // namespace
}  // namespace octet::onnx

// What is written for ONNX Runtime's integer kernels, and that it is the same network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/evaluate_graph.h"
#include "ir/infer.h"
#include "numerics/quantize.h"
#include "onnx/export.h"
#include "onnx/import.h"

namespace octet::onnx {
namespace {

using ir::Graph;
using ir::OpKind;
using ir::Tensor;
using ir::Value;

Value* quantized(Graph& g, const std::string& name, Value* x, const std::vector<float>& scales) {
  const ir::Shape shape = scales.size() == 1 ? ir::Shape{} : ir::Shape{static_cast<int64_t>(scales.size())};
  Value* zero = g.add_constant(name + "/zero", Tensor::of<int8_t>(shape, std::vector<int8_t>(scales.size())));
  return g.add(OpKind::kFakeQuantize, name,
               {x, g.add_constant(name + "/scale", Tensor::of<float>(shape, scales)), zero},
               {{"axis", int64_t{0}}, {"qmin", int64_t{-128}}, {"qmax", int64_t{127}}});
}

Graph network() {
  Graph g;
  g.name = "forms";
  Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 2, 1, 2}});
  Value* w = g.add_constant("w", Tensor::of<float>({2, 2, 1, 1}, {0.5f, -0.25f, 0.125f, 0.75f}), true);
  // On the grid of the accumulator.
  Value* b = g.add_constant("b", Tensor::of<float>({2}, {12 * (0.1f * 0.01f), -7 * (0.1f * 0.02f)}), true);
  Value* y = g.add(OpKind::kConv, "conv", {quantized(g, "xq", x, {0.1f}), quantized(g, "wq", w, {0.01f, 0.02f}), b});
  g.add_output(quantized(g, "yq", y, {0.05f}));
  return g;
}

std::vector<float> run(const Graph& g) {
  return ir::evaluate_graph(g, {Tensor::of<float>({1, 2, 1, 2}, {1.04f, -2.3f, 0.77f, 12.6f})}).at(0).to_floats();
}

TEST(OnnxRuntimeForms, AreTheSameNetwork) {
  const Graph g = network();
  const Graph back = import_bytes(export_bytes(g, {.onnxruntime_forms = true}), {});
  EXPECT_EQ(run(back), run(g));
  // int32 codes are floats of their grid again, under the name of the bias, and still trained.
  ASSERT_NE(back.find_value("b"), nullptr);
  EXPECT_EQ(back.find_value("b")->constant->to_floats(), g.find_value("b")->constant->to_floats());
  EXPECT_TRUE(back.find_value("b")->trainable);
  // Activations are u8 around 128, weights s8 as before.
  const ir::Node* x = back.find_node("xq");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->get_int("qmin"), 0);
  EXPECT_EQ(x->input(2)->constant->to_ints(), std::vector<int64_t>{128});
  EXPECT_LT(back.find_node("wq")->get_int("qmin"), 0);
}

TEST(OnnxRuntimeForms, AreNotWrittenUnlessAskedFor) {
  const std::string plain = export_bytes(network());
  EXPECT_EQ(plain.find("b_DequantizeLinear"), std::string::npos);
  EXPECT_NE(export_bytes(network(), {.onnxruntime_forms = true}).find("b_DequantizeLinear"), std::string::npos);
}

}  // namespace
}  // namespace octet::onnx

#include "passes/snap_biases.h"

#include <gtest/gtest.h>

#include "numerics/quantize.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Tensor;

ir::Graph conv_graph(const char* state) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 1, 4, 4}});
  const auto zero = [&](const std::string& name, ir::Shape shape) {
    return g.add_constant(
        name, Tensor::of<int8_t>(shape, std::vector<int8_t>(static_cast<size_t>(ir::element_count(shape)), 0)));
  };
  ir::Value* xq = g.add(OpKind::kFakeQuantize, "xq", {x, g.add_constant("xs", Tensor::scalar(0.03f)), zero("xz", {})},
                        {{"state", std::string(state)}});
  ir::Value* w = g.add_constant("w", Tensor::of<float>({2, 1, 1, 1}, std::vector<float>{1, -2}));
  ir::Value* wq =
      g.add(OpKind::kFakeQuantize, "wq",
            {w, g.add_constant("ws", Tensor::of<float>({2}, std::vector<float>{0.01f, 0.02f})), zero("wz", {2})},
            {{"axis", int64_t{0}}, {"qmin", int64_t{-127}}});
  ir::Value* b = g.add_constant("b", Tensor::of<float>({2}, std::vector<float>{0.12345f, -7.654321f}));
  g.add_output(g.add(OpKind::kConv, "conv", {xq, wq, b}, {{"kernel_shape", std::vector<int64_t>{1, 1}}}));
  return g;
}

TEST(SnapBiases, LeavesTheAccumulatorsBiasAsItIs) {
  ir::Graph g = conv_graph(ir::kFrozen);
  const std::vector<float> before = g.find_value("b")->constant->to_floats();
  EXPECT_EQ(snap_biases(g), 1);
  const std::vector<float> after = g.find_value("b")->constant->to_floats();
  const float scales[] = {0.01f, 0.02f};
  for (size_t c = 0; c < 2; ++c) {
    const float unit = 0.03f * scales[c];
    EXPECT_NE(before[c], after[c]);
    EXPECT_NEAR(before[c], after[c], unit / 2 * 1.0001f);
    EXPECT_EQ(numerics::quantize_bias(before[c], 0.03f, scales[c]),
              numerics::quantize_bias(after[c], 0.03f, scales[c]));
    EXPECT_EQ(after[c], static_cast<float>(numerics::quantize_bias(after[c], 0.03f, scales[c])) * unit);
  }
  EXPECT_EQ(snap_biases(g), 1);  // a second time changes nothing
  EXPECT_EQ(g.find_value("b")->constant->to_floats(), after);
}

// A bias of a channel whose weights are next to nothing: at the end of int32 it would be another one. Such a layer
// stays in float32, or its file is written with a bias of floats.
TEST(SnapBiases, LeavesBiasesThatDoNotFit) {
  ir::Graph g = conv_graph(ir::kFrozen);
  g.set_constant(g.find_value("ws"), Tensor::of<float>({2}, std::vector<float>{0.01f, 1e-12f}));
  const std::vector<float> before = g.find_value("b")->constant->to_floats();
  EXPECT_EQ(snap_biases(g), 0);
  EXPECT_EQ(g.find_value("b")->constant->to_floats(), before);
}

// As over the levels of a detector: the same weights and bias behind tensors of other scales, and once in floating
// point.
TEST(SnapBiases, NodesOfOtherGridsShareNoLonger) {
  ir::Graph g = conv_graph(ir::kFrozen);
  ir::Value *bias = g.find_value("b"), *weight = g.find_value("wq"), *zero = g.find_value("xz");
  bias->trainable = true;
  const std::vector<float> before = bias->constant->to_floats();
  const float scales[] = {0.03f, 0.05f};
  ir::Value* xq =
      g.add(OpKind::kFakeQuantize, "yq", {g.find_value("x"), g.add_constant("ys", Tensor::scalar(scales[1])), zero},
            {{"state", std::string(ir::kFrozen)}});
  const ir::Attributes kernel = {{"kernel_shape", std::vector<int64_t>{1, 1}}};
  g.add_output(g.add(OpKind::kConv, "conv2", {xq, weight, bias}, kernel));
  g.add_output(g.add(OpKind::kConv, "conv3", {g.find_value("x"), g.find_value("w"), bias}, kernel));
  EXPECT_EQ(snap_biases(g), 2);
  EXPECT_EQ(snap_biases(g), 2);  // a second time changes nothing
  const ir::Value* own[] = {g.find_value("conv")->producer->input(2), g.find_value("conv2")->producer->input(2)};
  EXPECT_NE(own[0], own[1]);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(own[i]->users.size(), 1u);
    EXPECT_TRUE(own[i]->trainable);
    const std::vector<float> after = own[i]->constant->to_floats();
    for (size_t c = 0; c < 2; ++c) {
      const float unit = scales[i] * (c == 0 ? 0.01f : 0.02f);
      EXPECT_EQ(after[c],
                static_cast<float>(numerics::quantize_bias(before[c], scales[i], c == 0 ? 0.01f : 0.02f)) * unit);
    }
  }
  EXPECT_EQ(g.find_value("conv3")->producer->input(2)->constant->to_floats(), before);
}

TEST(SnapBiases, LeavesObservingGraphsAlone) {
  ir::Graph g = conv_graph(ir::kObserving);
  EXPECT_EQ(snap_biases(g), 0);
}

}  // namespace
}  // namespace octet::passes

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

TEST(SnapBiases, LeavesObservingGraphsAlone) {
  ir::Graph g = conv_graph(ir::kObserving);
  EXPECT_EQ(snap_biases(g), 0);
}

}  // namespace
}  // namespace octet::passes

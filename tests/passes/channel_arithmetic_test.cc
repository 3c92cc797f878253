// Batch normalization that exporters wrote as arithmetic: folded where the node would be, in the pass of that node.
#include "passes/channel_arithmetic.h"

#include <gtest/gtest.h>

#include <limits>

#include "passes/block_builder.h"
#include "passes/evaluate.h"
#include "passes/fold_batch_norm.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Shape;
using ir::Value;

// Folding rounds weights and biases once to float32: errors of some units in the last place, summed over a window.
constexpr double kTolerance = 64 * 0x1p-24;

// (y - mean) * gain / deviation + offset.
Value* normalized(BlockBuilder& b, Value* y, const std::string& name, const Shape& shape) {
  y = b.op(OpKind::kSub, name + ".sub", {y, b.parameter(name + ".mean", shape)});
  y = b.op(OpKind::kMul, name + ".mul", {b.parameter(name + ".gain", shape), y});
  y = b.op(OpKind::kDiv, name + ".div", {y, b.parameter(name + ".deviation", shape, 0.5f, 2)});
  return b.op(OpKind::kAdd, name, {y, b.parameter(name + ".offset", shape)});
}

TEST(ChannelArithmetic, ConstantsOfAnyShapeAlongTheChannelsGoIntoConvolutions) {
  for (const Shape& shape : {Shape{6, 1, 1}, {1, 6, 1, 1}, {1, 1, 1}, {}, {1, 1, 1, 1}})
    for (const bool bias : {false, true}) {
      BlockBuilder b;
      b.graph.add_output(normalized(b, b.conv(b.x, "conv", 6, 3, bias), "norm", shape));
      EXPECT_EQ(run_and_compare(b.graph, fold_batch_norm, kTolerance), 4) << ir::shape_string(shape);
      EXPECT_EQ(b.graph.nodes().size(), 1u);
      EXPECT_EQ(b.graph.find_value("conv.bias")->constant->size(), 6);
    }
}

TEST(ChannelArithmetic, TransposedConvolutionsOfGroups) {
  BlockBuilder b;
  auto* y = b.op(OpKind::kConvTranspose, "up", {b.x, b.parameter("up.weight", {4, 3, 2, 2})}, {{"group", int64_t{2}}});
  b.graph.add_output(normalized(b, y, "norm", {6, 1, 1}));
  EXPECT_EQ(run_and_compare(b.graph, fold_batch_norm, kTolerance), 4);
  EXPECT_EQ(b.graph.nodes().size(), 1u);
}

TEST(ChannelArithmetic, ProductsOfMatrices) {
  for (const Shape& shape : {Shape{6}, {1, 6}, {}}) {
    BlockBuilder b({2, 4});
    auto* y = normalized(b, b.gemm(b.x, "fc1", 6), "norm1", shape);
    y = b.op(OpKind::kMatMul, "fc2", {y, b.parameter("fc2.weight", {6, 6})});
    b.graph.add_output(normalized(b, y, "norm2", shape));
    EXPECT_EQ(run_and_compare(b.graph, fold_batch_norm, kTolerance), 8) << ir::shape_string(shape);
    ASSERT_EQ(b.graph.nodes().size(), 2u);
    EXPECT_EQ(b.graph.find_node("fc2")->kind, OpKind::kGemm) << "it has a bias now";
  }
}

TEST(ChannelArithmetic, NormalizationBehindAProductOfMatrices) {
  BlockBuilder b({2, 4});
  b.graph.add_output(b.bn(b.op(OpKind::kMatMul, "fc", {b.x, b.parameter("fc.weight", {4, 6})}), "bn"));
  EXPECT_EQ(run_and_compare(b.graph, fold_batch_norm, kTolerance), 1);
  EXPECT_EQ(b.graph.find_node("fc")->kind, OpKind::kGemm);
}

TEST(ChannelArithmetic, RowsTakeFactorsAlone) {
  BlockBuilder b({2, 5, 4});
  auto* y = b.op(OpKind::kMatMul, "rows", {b.x, b.parameter("rows.weight", {4, 6})});
  y = b.op(OpKind::kMul, "gain", {y, b.parameter("gain.values", {6})});
  b.graph.add_output(b.op(OpKind::kAdd, "shift", {y, b.parameter("shift.values", {6})}));
  auto* along_axis_1 = b.op(OpKind::kMatMul, "other", {b.x, b.parameter("other.weight", {4, 5})});
  b.graph.add_output(b.op(OpKind::kMul, "line", {along_axis_1, b.parameter("line.values", {5, 1})}));
  EXPECT_EQ(run_and_compare(b.graph, fold_batch_norm, kTolerance), 1);
  EXPECT_EQ(b.graph.find_node("gain"), nullptr);
  EXPECT_EQ(b.graph.find_node("rows")->kind, OpKind::kMatMul);
  EXPECT_NE(b.graph.find_node("line"), nullptr) << "its constants lie along the rows";
}

TEST(ChannelArithmetic, StaysWhereOthersReadTheLayer) {
  BlockBuilder b;
  auto* y = b.conv(b.x, "conv", 6);
  b.graph.add_output(b.op(OpKind::kMul, "mul", {y, b.parameter("gain", {6, 1, 1})}));
  b.graph.add_output(b.relu(y, "relu"));
  auto* z = b.conv(b.x, "seen", 6);
  b.graph.add_output(z);
  b.graph.add_output(b.op(OpKind::kAdd, "add", {z, b.parameter("offset", {6, 1, 1})}));
  EXPECT_EQ(run_and_compare(b.graph, fold_batch_norm), 0);
}

TEST(ChannelArithmetic, WeightsThatOthersUseKeepTheirValues) {
  BlockBuilder b;
  auto* y = b.conv(b.x, "a", 4);
  Value* shared = b.graph.find_value("a.weight");
  b.graph.add_output(b.op(OpKind::kMul, "mul", {y, b.parameter("gain", {4, 1, 1})}));
  b.graph.add_output(b.op(OpKind::kConv, "b", {b.x, shared}));
  const std::vector<float> before = shared->constant->to_floats();
  EXPECT_EQ(run_and_compare(b.graph, fold_batch_norm, kTolerance), 1);
  EXPECT_EQ(b.graph.find_node("b")->input(1)->constant->to_floats(), before);
  EXPECT_NE(b.graph.find_node("a")->input(1), b.graph.find_node("b")->input(1));
}

TEST(ChannelArithmetic, LeavesWhatWouldBeNoNumber) {
  BlockBuilder b({2, 4});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  auto* mask = b.graph.add_constant("mask", ir::Tensor::of<float>({3}, std::vector<float>{0, -kInfinity, 0}));
  auto* zeros = b.graph.add_constant("zeros", ir::Tensor::of<float>({3}, std::vector<float>{1, 0, 1}));
  auto* numbers = b.graph.add_constant("numbers", ir::Tensor::of<float>({3}, std::vector<float>{1, 2, 3}));
  b.graph.add_output(b.op(OpKind::kAdd, "masked", {b.gemm(b.x, "fc1", 3), mask}));
  b.graph.add_output(b.op(OpKind::kDiv, "divided", {b.gemm(b.x, "fc2", 3), zeros}));
  b.graph.add_output(b.op(OpKind::kDiv, "inverse", {numbers, b.gemm(b.x, "fc3", 3)}));
  EXPECT_EQ(fold_batch_norm(b.graph), 0);
}

}  // namespace
}  // namespace octet::passes

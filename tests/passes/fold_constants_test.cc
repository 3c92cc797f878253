#include "passes/fold_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/block_builder.h"
#include "passes/evaluate.h"

namespace octet::passes {
namespace {

using ir::OpKind;

// Folding rounds weights and biases once to float32: errors of some units in the last place, summed over a window.
constexpr double kFoldTolerance = 64 * 0x1p-24;

TEST(FoldConstantsTest, ChannelArithmeticGoesIntoConvolutions) {
  BlockBuilder b;
  auto* y = b.conv(b.x, "conv1", 3, 3);
  y = b.op(OpKind::kMul, "mul", {y, b.parameter("gain", {1, 3, 1, 1})});
  y = b.op(OpKind::kAdd, "add", {b.parameter("shift", {3, 1, 1}), y});
  y = b.conv(b.relu(y, "relu"), "conv2", 2, 1, true);
  y = b.op(OpKind::kDiv, "div", {y, b.graph.add_constant("two", ir::Tensor::scalar<float>(2))});
  y = b.op(OpKind::kSub, "sub", {b.parameter("from", {2, 1, 1}), y});
  b.graph.add_output(y);
  EXPECT_EQ(run_and_compare(b.graph, fold_constants, kFoldTolerance), 4);
  EXPECT_EQ(b.graph.nodes().size(), 3u);
  EXPECT_EQ(b.graph.find_node("conv1")->output()->name, "add");
  EXPECT_EQ(b.graph.outputs()[0]->name, "sub");
}

TEST(FoldConstantsTest, LeavesArithmeticThatIsNotPerChannelOrHasOtherReaders) {
  BlockBuilder b;
  auto* y = b.conv(b.x, "conv1", 8);
  b.graph.add_output(b.op(OpKind::kAdd, "along_width", {y, b.parameter("row", {8})}));
  auto* z = b.conv(b.x, "conv2", 3);
  b.graph.add_output(b.op(OpKind::kMul, "mul", {z, b.parameter("gain", {3, 1, 1})}));
  b.graph.add_output(b.relu(z, "relu"));
  EXPECT_EQ(run_and_compare(b.graph, fold_constants, kFoldTolerance), 0);
}

TEST(FoldConstantsTest, DenseLayersOfKerasBecomeGemm) {
  BlockBuilder b({2, 6});
  auto* y = b.op(OpKind::kMatMul, "dense/MatMul", {b.x, b.parameter("kernel", {6, 3})});
  y = b.op(OpKind::kAdd, "dense/BiasAdd", {y, b.parameter("bias", {3})});
  b.graph.add_output(y);
  EXPECT_EQ(run_and_compare(b.graph, fold_constants, kFoldTolerance), 1);
  EXPECT_EQ(b.graph.find_node("dense/MatMul")->kind, OpKind::kGemm);
  EXPECT_EQ(b.graph.find_node("dense/MatMul")->input(2)->name, "bias");
  EXPECT_EQ(b.graph.outputs()[0]->name, "dense/BiasAdd");
}

TEST(FoldConstantsTest, WeightsBehindTransposesAndArithmetic) {
  BlockBuilder b({2, 6});
  auto* w =
      b.op(OpKind::kTranspose, "weight_t", {b.parameter("weight", {3, 6})}, {{"perm", std::vector<int64_t>{1, 0}}});
  auto* gain = b.graph.add_constant("gain", ir::Tensor::of<float>({3}, std::vector<float>{1, 2, 4}));
  auto* shift = b.graph.add_constant("shift", ir::Tensor::of<float>({6, 1}, std::vector<float>{1, 2, 3, 4, 5, 6}));
  auto* c = b.op(OpKind::kMul, "product", {gain, shift});
  b.graph.add_output(b.op(OpKind::kMatMul, "a", {b.x, w}));
  b.graph.add_output(b.op(OpKind::kMatMul, "b", {b.x, c}));
  EXPECT_EQ(run_and_compare(b.graph, fold_constants, kFoldTolerance), 2);
  EXPECT_TRUE(b.graph.find_value("weight_t")->trainable);
  EXPECT_EQ(b.graph.find_value("product")->constant->shape(), (ir::Shape{6, 3}));
  EXPECT_EQ(b.graph.find_value("product")->constant->to_floats()[5], 8.0f);
}

TEST(FoldConstantsTest, ParametersThatAreTrainedStaySeparate) {
  BlockBuilder b({2, 6});
  auto* w = b.op(OpKind::kMul, "product", {b.parameter("u", {6, 3}), b.parameter("v", {6, 3})});
  b.graph.add_output(b.op(OpKind::kMatMul, "a", {b.x, w}));
  EXPECT_EQ(run_and_compare(b.graph, fold_constants, kFoldTolerance), 0);
}

TEST(FoldConstantsTest, AnyArithmeticOfConstantsThatAreNotTrained) {
  BlockBuilder b({2, 6});
  auto* fixed = b.graph.add_constant("fixed", ir::Tensor::of<float>({1, 2}, std::vector<float>{0, 1}));
  auto* w = b.op(OpKind::kConcat, "both", {b.op(OpKind::kExp, "exp", {fixed}), fixed}, {{"axis", int64_t{0}}});
  b.graph.add_output(b.op(OpKind::kGemm, "a", {b.x, b.parameter("u", {6, 2}), w}));
  b.graph.add_output(b.op(OpKind::kMatMul, "b", {b.x, b.op(OpKind::kExp, "trained", {b.parameter("v", {6, 1})})}));
  EXPECT_EQ(run_and_compare(b.graph, fold_constants, kFoldTolerance), 2);
  EXPECT_EQ(b.graph.find_node("a")->input(2)->constant->to_floats(),
            (std::vector<float>{1, static_cast<float>(std::exp(1.0)), 0, 1}));
  EXPECT_NE(b.graph.find_node("trained"), nullptr);
}

}  // namespace
}  // namespace octet::passes

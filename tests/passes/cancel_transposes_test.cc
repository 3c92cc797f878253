#include "passes/cancel_transposes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/block_builder.h"
#include "passes/evaluate.h"

namespace octet::passes {
namespace {

using ir::OpKind;

struct LayoutBuilder : BlockBuilder {
  ir::Value* to_nhwc(ir::Value* v, const std::string& name) {
    return op(OpKind::kTranspose, name, {v}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  }
  ir::Value* to_nchw(ir::Value* v, const std::string& name) {
    return op(OpKind::kTranspose, name, {v}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  }
};

TEST(CancelTransposesTest, ThroughBiasAndActivation) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.conv(b.x, "conv1", 3), "t1");
  y = b.relu(b.add(y, b.parameter("bias", {3}), "bias_add"), "relu");
  b.graph.add_output(b.conv(b.to_nchw(y, "t2"), "conv2", 2));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 2);
  EXPECT_EQ(b.graph.nodes().size(), 4u);
  EXPECT_EQ(b.graph.find_value("bias")->constant->shape(), (ir::Shape{1, 3, 1, 1}));
  EXPECT_EQ(b.graph.find_value("relu")->type.shape, (ir::Shape{1, 3, 8, 8}));
}

TEST(CancelTransposesTest, ThroughPRelu) {
  LayoutBuilder b;
  auto* y = b.op(OpKind::kPRelu, "prelu", {b.to_nhwc(b.conv(b.x, "conv1", 3), "t1"), b.parameter("slope", {3})});
  b.graph.add_output(b.conv(b.to_nchw(y, "t2"), "conv2", 2));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 2);
  EXPECT_EQ(b.graph.find_value("slope")->constant->shape(), (ir::Shape{1, 3, 1, 1}));
}

TEST(CancelTransposesTest, ThroughAResidualBlockAndAConcat) {
  LayoutBuilder b;
  auto* x = b.relu(b.to_nhwc(b.conv(b.x, "stem", 3), "t1"), "relu");
  auto* y = b.to_nhwc(b.conv(b.to_nchw(x, "t2"), "conv", 3), "t3");
  auto* sum = b.add(y, x, "add");
  auto* both = b.op(OpKind::kConcat, "concat", {sum, x}, {{"axis", int64_t{3}}});
  b.graph.add_output(b.conv(b.to_nchw(both, "t4"), "head", 2));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 4);
  EXPECT_EQ(b.graph.find_node("concat")->get_int("axis"), 1);
}

TEST(CancelTransposesTest, AGraphOutputKeepsItsLayout) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.conv(b.x, "conv", 3), "t1");
  b.graph.add_output(b.relu(y, "nhwc"));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 0);
  EXPECT_EQ(b.graph.outputs()[0]->type.shape, (ir::Shape{1, 8, 8, 3}));
}

TEST(CancelTransposesTest, MergesWhatDoesNotCancel) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.to_nhwc(b.x, "t1"), "t2");
  b.graph.add_output(b.relu(y, "out"));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 1);
  EXPECT_EQ(b.graph.find_node("t2")->get_ints("perm"), (std::vector<int64_t>{0, 3, 1, 2}));
}

TEST(CancelTransposesTest, StopsWhereAnotherNodeNeedsTheLayout) {
  LayoutBuilder b;
  auto* y = b.to_nhwc(b.x, "t1");
  b.graph.add_output(b.op(OpKind::kFlatten, "flatten", {y}));
  b.graph.add_output(b.conv(b.to_nchw(b.relu(y, "relu"), "t2"), "conv", 2));
  EXPECT_EQ(run_and_compare(b.graph, cancel_transposes), 0);
}

}  // namespace
}  // namespace octet::passes

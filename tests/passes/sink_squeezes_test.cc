#include "passes/sink_squeezes.h"

#include <gtest/gtest.h>

#include "passes/block_builder.h"
#include "passes/evaluate.h"
#include "passes/fold_batch_norm.h"

namespace octet::passes {
namespace {

using ir::OpKind;

struct RowBuilder : BlockBuilder {
  RowBuilder() : BlockBuilder({1, 4, 9}) {}
  ir::Value* axes(const std::string& name, std::vector<int64_t> axes) {
    return graph.add_constant(name + ".axes", ir::Tensor::of<int64_t>({static_cast<int64_t>(axes.size())}, axes));
  }
  ir::Value* squeeze(ir::Value* v, const std::string& name, std::vector<int64_t> list = {2}) {
    return op(OpKind::kSqueeze, name, {v, axes(name, std::move(list))});
  }
  ir::Value* unsqueeze(ir::Value* v, const std::string& name, std::vector<int64_t> list = {2}) {
    return op(OpKind::kUnsqueeze, name, {v, axes(name, std::move(list))});
  }
  // A convolution over rows as Paddle writes it.
  ir::Value* conv_rows(ir::Value* rows, const std::string& name, int64_t out) {
    return squeeze(conv(unsqueeze(rows, name + ".up"), name, out), name + ".down");
  }
  ir::Value* hard_swish(ir::Value* v, const std::string& name) {
    return op(OpKind::kMul, name, {op(OpKind::kHardSigmoid, name + ".gate", {v}), v});
  }
  int count(OpKind kind) const {
    int n = 0;
    for (const auto& node : graph.nodes()) n += node->kind == kind;
    return n;
  }
};

TEST(SinkSqueezesTest, ConvolutionsOverRowsBecomeConvolutionsOfImages) {
  RowBuilder b;
  auto* y = b.hard_swish(b.bn(b.conv_rows(b.x, "conv1", 6), "bn1"), "swish");
  y = b.relu(b.add(b.bn(b.conv_rows(y, "conv2", 6), "bn2"), y, "sum"), "relu");
  y = b.add(y, b.parameter("bias", {6, 1}), "biased");
  y = b.op(OpKind::kPRelu, "prelu", {y, b.parameter("slope", {6, 1})});
  b.graph.add_output(b.conv_rows(y, "conv3", 3));
  EXPECT_EQ(run_and_compare(b.graph, sink_squeezes), 2);
  EXPECT_EQ(b.count(OpKind::kUnsqueeze), 1);
  EXPECT_EQ(b.count(OpKind::kSqueeze), 1);
  EXPECT_EQ(b.graph.outputs()[0]->name, "conv3.down");
  EXPECT_EQ(run_and_compare(b.graph, fold_batch_norm, 1e-5), 2);
}

TEST(SinkSqueezesTest, TheLastOneKeepsTheNameOfAnOutput) {
  RowBuilder b;
  auto* y = b.relu(b.conv_rows(b.x, "conv1", 6), "relu");
  b.graph.add_output(y);
  b.graph.add_output(b.conv_rows(y, "conv2", 3));
  EXPECT_EQ(run_and_compare(b.graph, sink_squeezes), 1);
  EXPECT_EQ(b.graph.find_value("relu")->type.shape, (ir::Shape{1, 6, 9}));
}

TEST(SinkSqueezesTest, ChannelsStayTheChannels) {
  RowBuilder b;
  auto* image = b.conv(b.unsqueeze(b.x, "up", {0}), "conv", 4);  // would be a batch of one: 1 1 4 9
  auto* y = b.bn(b.squeeze(image, "down", {0}), "bn");
  b.graph.add_output(y);
  EXPECT_EQ(run_and_compare(b.graph, sink_squeezes), 0);
  EXPECT_EQ(b.graph.find_node("bn")->input(0)->name, "down");
}

TEST(SinkSqueezesTest, DataOfOtherOriginsStays) {
  RowBuilder b;
  auto* y = b.conv_rows(b.x, "conv1", 4);
  b.graph.add_output(b.conv_rows(b.add(y, b.x, "sum"), "conv2", 3));  // x was never an image
  EXPECT_EQ(run_and_compare(b.graph, sink_squeezes), 0);
  EXPECT_EQ(b.count(OpKind::kSqueeze), 2);
}

TEST(SinkSqueezesTest, OtherAxesDoNotCancel) {
  RowBuilder b;
  auto* y = b.relu(b.conv_rows(b.x, "conv1", 4), "relu");
  b.graph.add_output(b.conv(b.unsqueeze(y, "up2", {3}), "conv2", 3));
  EXPECT_EQ(run_and_compare(b.graph, sink_squeezes), 0);
}

}  // namespace
}  // namespace octet::passes

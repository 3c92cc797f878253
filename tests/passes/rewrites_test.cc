// remove_identity, canonicalize_activations, fuse_pad: the graph computes the same, with fewer or plainer nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/block_builder.h"
#include "passes/canonicalize_activations.h"
#include "passes/evaluate.h"
#include "passes/fuse_pad.h"
#include "passes/remove_identity.h"

namespace octet::passes {
namespace {

using ir::OpKind;

std::vector<std::string> kinds(const ir::Graph& graph) {
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) out.push_back(node->info().name);
  return out;
}

TEST(RemoveIdentityTest, OutputsKeepTheirNames) {
  BlockBuilder b;
  auto* y = b.relu(b.op(OpKind::kIdentity, "id1", {b.x}), "relu");
  y = b.op(OpKind::kDropout, "dropout", {y});
  y = b.op(OpKind::kCast, "cast", {b.conv(y, "conv", 2)}, {{"to", int64_t{1}}});
  b.graph.add_output(b.op(OpKind::kIdentity, "out", {y}));
  EXPECT_EQ(run_and_compare(b.graph, [](ir::Graph& g) { return remove_identity(g); }), 4);
  EXPECT_THAT(kinds(b.graph), ::testing::ElementsAre("Relu", "Conv"));
  EXPECT_EQ(b.graph.find_node("conv")->output()->name, "out");
}

TEST(RemoveIdentityTest, KeepsWhatJoinsTwoNamesAndDropoutWhenAsked) {
  BlockBuilder b;
  b.graph.add_output(b.op(OpKind::kIdentity, "copy", {b.x}));
  auto* y = b.relu(b.x, "relu");
  b.graph.add_output(y);
  b.graph.add_output(b.op(OpKind::kIdentity, "second", {y}));
  b.graph.add_output(b.relu(b.op(OpKind::kDropout, "dropout", {y}), "last"));
  EXPECT_EQ(run_and_compare(b.graph, [](ir::Graph& g) { return remove_identity(g, {.keep_dropout = true}); }), 0);
  EXPECT_EQ(run_and_compare(b.graph, [](ir::Graph& g) { return remove_identity(g); }), 1);
}

// Paddle's Swish is x * Sigmoid(1 * x).
TEST(RemoveIdentityTest, NumbersThatChangeNothing) {
  BlockBuilder b;
  const auto number = [&](const std::string& name, float value, bool trainable = false) {
    return b.graph.add_constant(name, ir::Tensor::of<float>({1}, std::vector<float>{value}), trainable);
  };
  auto* y = b.conv(b.x, "conv", 4);
  y = b.op(OpKind::kMul, "swish",
           {y, b.op(OpKind::kSigmoid, "gate", {b.op(OpKind::kMul, "beta", {number("one", 1), y})})});
  y = b.op(OpKind::kDiv, "div", {b.op(OpKind::kAdd, "plus", {y, number("zero", 0)}), number("one2", 1)});
  y = b.op(OpKind::kSub, "from_zero", {number("zero2", 0), b.op(OpKind::kSub, "minus", {y, number("zero3", 0)})});
  y = b.op(OpKind::kMul, "trained", {y, number("scale", 1, true)});
  auto* one = b.graph.add_constant("more_axes", ir::Tensor::of<float>({1, 1, 1, 1, 1}, std::vector<float>{1}));
  b.graph.add_output(b.op(OpKind::kDiv, "into_one", {number("one3", 1), b.op(OpKind::kMul, "grown", {y, one})}));
  EXPECT_EQ(run_and_compare(b.graph, [](ir::Graph& g) { return remove_identity(g); }), 4);
}

TEST(CanonicalizeActivationsTest, EveryFormOfReluAndOfClippedRelu) {
  BlockBuilder b;
  const auto scalar = [&](float v) {
    return b.graph.add_constant(b.graph.unique_name("limit"), ir::Tensor::scalar<float>(v));
  };
  const auto one = [&](float v) {
    return b.graph.add_constant(b.graph.unique_name("limit"), ir::Tensor::of<float>({1}, std::vector<float>{v}));
  };
  const auto out = [&](ir::Value* v) { b.graph.add_output(v); };
  out(b.op(OpKind::kClip, "clip_low", {b.x, scalar(0)}));
  out(b.op(OpKind::kClip, "clip_inf", {b.x, scalar(0), scalar(INFINITY)}));
  out(b.op(OpKind::kMax, "max", {scalar(0), b.x}));
  out(b.op(OpKind::kMin, "min", {b.relu(b.x, "inner1"), one(0.5f)}));
  out(b.op(OpKind::kClip, "clip_relu", {b.relu(b.x, "inner2"), scalar(-1), scalar(0.5f)}));
  out(b.relu(b.op(OpKind::kClip, "clip6", {b.x, scalar(0), scalar(0.6f)}), "relu_of_clip"));
  out(b.op(OpKind::kMax, "max1", {b.x, scalar(0.1f)}));
  out(b.silu(b.x, "swish"));
  EXPECT_EQ(run_and_compare(b.graph, canonicalize_activations), 6);
  EXPECT_THAT(kinds(b.graph),
              ::testing::ElementsAre("Relu", "Relu", "Relu", "Clip", "Clip", "Clip", "Max", "Sigmoid", "Mul"));
  EXPECT_EQ(b.graph.find_node("max")->inputs.size(), 1u);
  EXPECT_EQ(canonicalize_activations(b.graph), 0);
}

ir::Value* pad(BlockBuilder& b, ir::Value* x, const std::string& name, std::vector<int64_t> pads) {
  auto* sizes =
      b.graph.add_constant(name + ".pads", ir::Tensor::of<int64_t>({static_cast<int64_t>(pads.size())}, pads));
  return b.op(OpKind::kPad, name, {x, sizes});
}

const ir::Attributes kPool = {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"strides", std::vector<int64_t>{2, 2}}};

TEST(FusePadTest, ConvolutionsAndPoolsTakePaddingOver) {
  BlockBuilder b;
  auto* x = b.relu(b.x, "relu");
  auto* padded = pad(b, x, "pad", {0, 0, 1, 0, 0, 0, 2, 1});
  b.graph.add_output(b.conv(padded, "conv", 3, 3));
  b.graph.add_output(b.op(OpKind::kMaxPool, "max", {padded}, kPool));
  b.graph.add_output(b.op(OpKind::kAveragePool, "average", {padded}, kPool));
  EXPECT_EQ(run_and_compare(b.graph, fuse_pad), 3);
  EXPECT_EQ(b.graph.find_node("pad"), nullptr);
  EXPECT_EQ(b.graph.find_node("conv")->get_ints("pads"), (std::vector<int64_t>{2, 1, 3, 2}));
  EXPECT_EQ(b.graph.find_node("average")->get_int("count_include_pad"), 1);
}

TEST(FusePadTest, LeavesPaddingThatIsNotTheReadersOwn) {
  BlockBuilder b;
  // Signed values: a MaxPool must see the zeros. Channels: no window reaches there. A Relu has no pads.
  auto* padded = pad(b, b.x, "pad", {0, 0, 1, 1, 0, 0, 1, 1});
  b.graph.add_output(b.op(OpKind::kMaxPool, "max", {padded}, kPool));
  b.graph.add_output(b.relu(padded, "relu"));
  b.graph.add_output(b.conv(pad(b, b.x, "channels", {0, 1, 0, 0, 0, 0, 0, 0}), "conv", 2));
  // A window whose taps leap over the tensor could come to lie in the pads alone.
  ir::Attributes dilated = kPool;
  dilated["dilations"] = std::vector<int64_t>{2, 2};
  b.graph.add_output(
      b.op(OpKind::kMaxPool, "dilated", {pad(b, b.relu(b.x, "positive"), "wide", {0, 0, 2, 2, 0, 0, 2, 2})}, dilated));
  EXPECT_EQ(run_and_compare(b.graph, fuse_pad), 0);
}

}  // namespace
}  // namespace octet::passes

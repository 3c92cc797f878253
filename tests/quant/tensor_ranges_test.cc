#include "quant/tensor_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/cache_losses.h"
#include "support/net_test_util.h"

namespace octet::quant {
namespace {

using ir::OpKind;
using ir::Value;
using octet::testing::QuantNet;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Value* conv(QuantNet& net, Value* x, Value* w, const std::string& name) {
  return net.graph.add(OpKind::kConv, name, {x, w}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
}

TEST(QuantizerRanges, InTermsOfSymmetricInt8) {
  QuantNet net(1);
  Value* x = net.input({1, 4, 8, 8});
  Value* a = net.graph.add(OpKind::kRelu, "a", {net.fq(x, 0.05f)});
  Value* b = net.graph.add(OpKind::kRelu, "b", {net.fq(a, 0.01f, /*is_unsigned=*/true)});
  Value* c = net.graph.add(OpKind::kRelu, "c", {net.fq(b, 0.01f, true, 100)});
  net.graph.add_output(net.graph.add(OpKind::kAdd, "d", {net.fq(c, 0.02f), net.fq(c, 0.03f)}));
  std::map<std::string, float> scales;
  for (const auto& [value, range] : quantizer_ranges(net.graph)) scales[value->name] = range.scale;
  EXPECT_EQ(scales.size(), 4u);
  EXPECT_EQ(scales["x"], 0.05f);  // to the bit
  EXPECT_FLOAT_EQ(scales["a"], 0.01f * 255 / 127);
  EXPECT_FLOAT_EQ(scales["b"], 0.01f * 155 / 127);  // -1.00 .. 1.55
  EXPECT_EQ(scales["c"], 0.03f);
}

// input -> conv -> relu -> maxpool -> (sum with itself through an average) ... as a QAT network leaves it.
TEST(DeriveRanges, WhatFollows) {
  QuantNet net(2);
  Value* x = net.input({1, 4, 8, 8});
  Value* w = net.constant({4, 4, 3, 3}, -1, 1);
  Value* c1 = conv(net, x, w, "c1");
  Value* r1 = net.graph.add(OpKind::kRelu, "r1", {c1});
  Value* p1 = net.graph.add(OpKind::kMaxPool, "p1", {r1}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  Value* c2 = conv(net, p1, w, "c2");
  Value* six = net.graph.add(OpKind::kClip, "six", {c2, net.scalar(0), net.scalar(6)});
  Value* sum = net.graph.add(OpKind::kAdd, "sum", {six, p1});
  Value* mean = net.graph.add(OpKind::kGlobalAveragePool, "mean", {sum});
  Value* gate = net.graph.add(OpKind::kSigmoid, "gate", {mean});
  Value* cat = net.graph.add(OpKind::kConcat, "cat", {gate, mean}, {{"axis", int64_t{1}}});
  net.graph.add_output(cat);
  TensorRanges ranges = {{"x", {.scale = 0.1f}}, {"p1", {.scale = 0.2f}}, {"sum", {.scale = 0.3f}}};
  EXPECT_EQ(derive_ranges(net.graph, ranges), 7);
  EXPECT_EQ(ranges.at("r1").scale, 0.2f);  // backward through the pool ...
  EXPECT_EQ(ranges.at("r1").how, "that of 'p1' (MaxPool)");
  EXPECT_EQ(ranges.at("c1").scale, 0.2f);  // ... and the Relu
  EXPECT_EQ(ranges.at("six").scale, 6.0f / 127);
  EXPECT_EQ(ranges.at("six").how, "Clip ends at 6");
  EXPECT_EQ(ranges.at("c2").scale, 6.0f / 127);  // what is cut off there is cut off by the Clip
  EXPECT_EQ(ranges.at("mean").scale, 0.3f);
  EXPECT_EQ(ranges.at("gate").scale, 1.0f / 127);
  EXPECT_EQ(ranges.at("cat").scale, 0.3f);  // the largest
  EXPECT_EQ(ranges.at("cat").origin, RangeOrigin::kDerived);
  EXPECT_THAT(tensors_without_range(net.graph, ranges), ElementsAre());
  // The pool's inputs and outputs agree; the sum's do not.
  EXPECT_THAT(unequal_ranges(net.graph, ranges), ElementsAre("sum"));
}

TEST(DeriveRanges, AConvolutionOfASumHasToBeMeasured) {
  QuantNet net(3);
  Value* x = net.input({1, 4, 8, 8});
  Value* c = conv(net, x, net.constant({4, 4, 3, 3}, -1, 1), "conv");
  net.graph.add_output(net.graph.add(OpKind::kAdd, "sum", {c, x}));
  TensorRanges ranges = {{"x", {.scale = 0.1f}}};
  EXPECT_EQ(derive_ranges(net.graph, ranges), 0);
  EXPECT_THAT(tensors_without_range(net.graph, ranges), ElementsAre("conv", "sum"));
}

// A tensor that something else reads, too, needs its whole range.
TEST(DeriveRanges, NotBackwardWhereOthersRead) {
  QuantNet net(4);
  Value* x = net.input({1, 4, 8, 8});
  Value* c = conv(net, x, net.constant({4, 4, 3, 3}, -1, 1), "conv");
  Value* r = net.graph.add(OpKind::kRelu, "r", {c});
  net.graph.add_output(net.graph.add(OpKind::kAdd, "sum", {r, c}));
  TensorRanges ranges = {{"x", {.scale = 0.1f}}, {"r", {.scale = 0.2f}}};
  EXPECT_EQ(derive_ranges(net.graph, ranges), 0);
}

TEST(CacheLosses, AllKinds) {
  QuantNet net(5);
  Value* x = net.input({1, 4, 8, 8});
  Value* c1 = conv(net, net.fq(x, 0.05f, /*is_unsigned=*/true), net.weights({4, 4, 3, 3}, 0), "c1");
  Value* c2 = conv(net, net.fq(c1, 0.05f, true, 128), net.constant({4, 4, 3, 3}, -1, 1), "c2");
  Value* sum = net.graph.add(OpKind::kAdd, "sum", {net.fq(c2, 0.1f), net.fq(c2, 0.2f)});
  net.graph.add_output(net.graph.add(OpKind::kAdd, "end", {sum, c2}));
  std::map<std::string, std::vector<std::string>> losses;
  for (const CacheLoss& loss : cache_losses(net.graph)) losses[loss.what.substr(0, 12)] = loss.cases;
  EXPECT_THAT(losses["scales of we"], ElementsAre(HasSubstr("up to")));
  EXPECT_THAT(losses["zero points:"], ElementsAre("c1: 128"));
  EXPECT_THAT(losses["unsigned cod"], ElementsAre("x"));
  EXPECT_THAT(losses["several scal"], ElementsAre("c2: 2 scales"));
  EXPECT_THAT(losses["what stays i"], ElementsAre("c2 for Add 'end'", "the weights of 'c2'"));
}

TEST(CacheLosses, NoneOfAPlainNetwork) {
  QuantNet net(6);
  Value* x = net.input({1, 4, 8, 8});
  Value* w = net.constant({1, 4, 3, 3}, -1, 1);
  float largest = 0;
  for (float v : w->constant->to_floats()) largest = std::max(largest, std::abs(v));
  Value* scale = net.graph.add_constant("ws", ir::Tensor::of<float>({1}, std::vector<float>{largest / 127}));
  Value* zero = net.graph.add_constant("wz", ir::Tensor::of<int8_t>({1}, std::vector<int8_t>{0}));
  Value* q = net.graph.add(OpKind::kFakeQuantize, "wq", {w, scale, zero},
                           {{"qmin", int64_t{-127}}, {"qmax", int64_t{127}}, {"axis", int64_t{0}}});
  net.graph.add_output(conv(net, net.fq(x, 0.05f), q, "conv"));
  EXPECT_TRUE(cache_losses(net.graph).empty());
}

}  // namespace
}  // namespace octet::quant

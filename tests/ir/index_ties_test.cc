#include "ir/index_ties.h"

#include <gtest/gtest.h>

#include "support/net_test_util.h"

namespace octet::ir {
namespace {

using K = OpKind;
using Ints = std::vector<int64_t>;

class IndexTiesTest : public ::testing::Test {
 protected:
  // A convolution by itself, whose channels nothing ties to others.
  Value* layer(int64_t channels) { return net.conv(x, 3, channels, 1, {.quantized = false, .bias = true}); }
  // The network ends behind `values`, each read by a convolution that makes one channel.
  IndexTies ties(const std::vector<Value*>& values) {
    std::vector<Value*> outputs;
    for (Value* v : values) outputs.push_back(net.conv(v, (*v->type.shape)[1], 1, 1, {.quantized = false}));
    net.finish(outputs);
    return IndexTies(net.graph);
  }
  static bool tied(const IndexTies& t, const Value* a, size_t axis_a, int64_t i, const Value* b, size_t axis_b,
                   int64_t j) {
    return t.class_of(t.place(a, axis_a, i)) == t.class_of(t.place(b, axis_b, j));
  }
  static std::string why(const IndexTies& t, const Value* v, int64_t channel) {
    const std::string* reason = t.why_fixed(t.place(v, 1, channel));
    return reason ? *reason : "";
  }

  testing::QuantNet net{1};
  Value* x = net.input({1, 3, 4, 4});
};

TEST_F(IndexTiesTest, FiltersChannelsAndBiasAreOneThing) {
  Value* y = layer(5);
  const Node* conv = y->producer;
  Value* z = net.relu(y);
  const IndexTies t = ties({z});
  const Node* reader = z->users[0];
  for (int64_t c = 0; c < 5; ++c) {
    EXPECT_TRUE(tied(t, y, 1, c, conv->input(1), 0, c));
    EXPECT_TRUE(tied(t, y, 1, c, conv->input(2), 0, c));
    EXPECT_TRUE(tied(t, y, 1, c, z, 1, c));
    EXPECT_TRUE(tied(t, y, 1, c, reader->input(1), 1, c));
    EXPECT_EQ(why(t, y, c), "");
  }
  EXPECT_FALSE(tied(t, y, 1, 0, y, 1, 1));
  EXPECT_EQ(*t.why_fixed(t.place(conv->input(1), 1, 2)), "'x' is an input of the network");
  EXPECT_NE(t.why_fixed(t.place(y, 2, 0)), nullptr);  // pixels
  EXPECT_NE(t.why_fixed(t.place(y, 0, 0)), nullptr);  // images
}

TEST_F(IndexTiesTest, OperandsOfAddGoTogether) {
  Value *a = layer(4), *b = layer(4), *sum = net.op(K::kAdd, {a, b});
  const IndexTies t = ties({sum});
  EXPECT_TRUE(tied(t, a, 1, 3, b, 1, 3));
  EXPECT_FALSE(tied(t, a, 1, 3, b, 1, 2));
}

TEST_F(IndexTiesTest, WhatIsRepeatedStays) {
  Value *a = layer(4), *one = layer(1), *sum = net.op(K::kMul, {a, one});
  const IndexTies t = ties({sum});
  EXPECT_EQ(why(t, a, 1), "");
  EXPECT_NE(why(t, one, 0), "");
}

TEST_F(IndexTiesTest, ConcatSplitAndSliceShiftIndices) {
  Value *a = layer(2), *b = layer(3), *joined = net.op(K::kConcat, {a, b}, {{"axis", int64_t{1}}});
  const std::vector<Value*> pieces = net.split(joined, {1, 4});
  infer_node(*pieces[0]->producer);
  Value* part = net.op(K::kSlice, {joined, net.ints({-4}), net.ints({4}), net.ints({1})});  // 1, 2, 3
  const IndexTies t = ties({pieces[0], pieces[1], part});
  EXPECT_TRUE(tied(t, b, 1, 0, joined, 1, 2));
  EXPECT_TRUE(tied(t, a, 1, 0, pieces[0], 1, 0));
  EXPECT_TRUE(tied(t, b, 1, 2, pieces[1], 1, 3));
  EXPECT_TRUE(tied(t, a, 1, 1, part, 1, 0));
  EXPECT_EQ(why(t, b, 2), "");  // outside of the slice
}

TEST_F(IndexTiesTest, DepthwiseLayersLoseGroups) {
  Value *a = layer(4), *y = net.conv(a, 4, 8, 3, {.pad = 1, .groups = 4, .quantized = false});
  const IndexTies t = ties({y});
  for (int64_t c = 0; c < 4; ++c) {
    EXPECT_TRUE(tied(t, a, 1, c, y, 1, 2 * c));
    EXPECT_TRUE(tied(t, a, 1, c, y, 1, 2 * c + 1));
  }
  EXPECT_FALSE(tied(t, a, 1, 0, a, 1, 1));
  EXPECT_EQ(why(t, a, 0), "");
}

TEST_F(IndexTiesTest, WideGroupsLoseTheSameChannelEach) {
  Value *a = layer(8), *y = net.conv(a, 8, 6, 1, {.groups = 2, .quantized = false});
  const IndexTies t = ties({y});
  EXPECT_TRUE(tied(t, a, 1, 1, a, 1, 5));
  EXPECT_FALSE(tied(t, a, 1, 1, a, 1, 2));
  EXPECT_TRUE(tied(t, y, 1, 0, y, 1, 3));
  EXPECT_FALSE(tied(t, y, 1, 0, a, 1, 0));
}

TEST_F(IndexTiesTest, FlattenMakesManyOfEach) {
  Value *a = layer(3), *flat = net.op(K::kFlatten, {a});
  Value* y = net.op(K::kMatMul, {flat, net.constant({48, 2}, -1, 1)});
  net.finish({y});
  const IndexTies t(net.graph);
  for (int64_t i = 0; i < 48; ++i) EXPECT_TRUE(tied(t, a, 1, i / 16, flat, 1, i));
  EXPECT_FALSE(tied(t, a, 1, 0, a, 1, 1));
  EXPECT_EQ(why(t, a, 2), "");
}

TEST_F(IndexTiesTest, ShuffledGroupsLoseTheSameChannelEach) {
  Value* a = layer(6);
  Value* apart = net.op(K::kReshape, {a, net.ints({1, 2, 3, 4, 4})});
  Value* swapped = net.op(K::kTranspose, {apart}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  Value* y = net.op(K::kReshape, {swapped, net.ints({1, 6, 4, 4})});
  const IndexTies t = ties({y});
  EXPECT_TRUE(tied(t, a, 1, 1, a, 1, 4));
  EXPECT_TRUE(tied(t, a, 1, 1, y, 1, 2));  // channel 1 of group 0
  EXPECT_TRUE(tied(t, a, 1, 1, y, 1, 3));  // and of group 1
  EXPECT_FALSE(tied(t, a, 1, 1, a, 1, 2));
  EXPECT_EQ(why(t, a, 0), "");
}

TEST_F(IndexTiesTest, WhatMixesChannelsFixesThem) {
  Value* a = layer(4);
  Value* y = net.op(K::kSoftmax, {a}, {{"axis", int64_t{1}}});
  const IndexTies t = ties({y});
  EXPECT_EQ(why(t, a, 0), "Softmax 'Softmax' takes it as a whole");
}

TEST_F(IndexTiesTest, AnOpenSizeIsNoPlace) {
  testing::QuantNet open(2);
  Value* in = open.input({kDynamic, 3, kDynamic, 4});
  Value* y = open.conv(in, 3, 4, 1, {.quantized = false});
  Value* z = open.conv(y, 4, 1, 1, {.quantized = false});
  open.finish({z});
  const IndexTies t(open.graph);
  EXPECT_EQ(t.size(y, 0), 0);
  EXPECT_EQ(t.size(y, 2), 0);
  EXPECT_EQ(t.why_fixed(t.place(y, 1, 0)), nullptr);
}

TEST_F(IndexTiesTest, AQuantizerFixes) {
  Value* a = layer(4);
  const IndexTies t = ties({net.fq(a, 0.1f)});
  EXPECT_NE(why(t, a, 0), "");
}

}  // namespace
}  // namespace octet::ir

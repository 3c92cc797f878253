#include "app/weight_ranges.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octet::app {
namespace {

using ir::Tensor;

// Weights of two output channels with a scale each.
ir::Graph conv_of(const std::vector<float>& weights, const std::vector<float>& scales) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 2, 1, 1}});
  ir::Value* w = g.add_constant("w", Tensor::of<float>({2, 2, 1, 1}, weights));
  ir::Value* scale = g.add_constant("scale", Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales));
  ir::Value* zero = g.add_constant(
      "zero", Tensor::of<int64_t>({static_cast<int64_t>(scales.size())}, std::vector<int64_t>(scales.size())));
  ir::Value* q = g.add(ir::OpKind::kFakeQuantize, "q", {w, scale, zero},
                       {{"axis", int64_t{0}}, {"qmin", int64_t{-127}}, {"qmax", int64_t{127}}});
  g.add_output(g.add(ir::OpKind::kConv, "y", {x, q}));
  return g;
}

TEST(WeightRanges, AreOfEachChannelsOwnScale) {
  const auto ranges = weight_ranges(conv_of({1, -2, 0.5f, 0.25f}, {1, 0.25f}));
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].tensor, "w");
  EXPECT_EQ(ranges[0].shape, (ir::Shape{2, 2, 1, 1}));
  EXPECT_EQ(ranges[0].least, -2);
  EXPECT_EQ(ranges[0].largest, 1);
  EXPECT_EQ(ranges[0].least_scale, 0.25);
  EXPECT_EQ(ranges[0].largest_scale, 1);
  EXPECT_TRUE(std::isinf(ranges[0].sqnr_db)) << "all are multiples of their scales";
  EXPECT_EQ(ranges[0].clipped, 0);
}

TEST(WeightRanges, SayWhatIsLost) {
  // 254 becomes 127, the others are multiples of the scale.
  const WeightRange range = weight_ranges(conv_of({254, 3, -4, 5}, {1})).at(0);
  EXPECT_EQ(range.clipped, 0.25);
  EXPECT_NEAR(range.sqnr_db, 10 * std::log10((254.0 * 254 + 9 + 16 + 25) / (127.0 * 127)), 1e-9);
}

}  // namespace
}  // namespace octet::app

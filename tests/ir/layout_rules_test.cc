// Shape rules of operators that reduce or move elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "ir/rule_node.h"
#include "ir/test_graph.h"

namespace octet::ir {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;
constexpr int64_t kAny = kDynamic;
constexpr int64_t kFar = std::numeric_limits<int64_t>::max();

TEST(ReduceRules, FollowAxesAndKeepdims) {
  const Attributes squeeze = {{"keepdims", int64_t{0}}};
  EXPECT_EQ(Rule(OpKind::kReduceMean).in({kAny, 3, 4, 5}).constant(ints({2, -1})).shape(), "float32[?, 3, 1, 1]");
  EXPECT_EQ(Rule(OpKind::kReduceMean, squeeze).in({kAny, 3, 4, 5}).constant(ints({2, 3})).shape(), "float32[?, 3]");
  EXPECT_EQ(Rule(OpKind::kReduceMax, {{"axes", Ints{1}}}).in({2, 3}).shape(), "float32[2, 1]");
  EXPECT_EQ(Rule(OpKind::kReduceSum, squeeze).in({2, 3}).shape(), "float32[]");
  EXPECT_EQ(Rule(OpKind::kReduceSum, {{"noop_with_empty_axes", int64_t{1}}}).in({2, 3}).shape(), "float32[2, 3]");
  EXPECT_EQ(Rule(OpKind::kReduceSum).in({2, 3}).in({1}, DataType::kInt64).shape(), "float32[?, ?]");
  EXPECT_THAT(Rule(OpKind::kReduceSum).in({2, 3}).constant(ints({1, -1})).error(), HasSubstr("axis -1 is named twice"));
  EXPECT_EQ(Rule(OpKind::kArgMax, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}).in({kAny, 10}).shape(), "int64[?]");
}

TEST(ReshapeRule, InfersAndCopies) {
  const auto reshape = [](Shape from, const Ints& to) { return Rule(OpKind::kReshape).in(from).constant(ints(to)); };
  EXPECT_EQ(reshape({kAny, 512, 1, 1}, {0, -1}).shape(), "float32[?, 512]");
  EXPECT_EQ(reshape({kAny, 512, 1, 1}, {-1, 512}).shape(), "float32[?, 512]");
  EXPECT_EQ(reshape({2, 3, 4}, {4, -1}).shape(), "float32[4, 6]");
  EXPECT_EQ(reshape({kAny, 4}, {1, 8}).shape(), "float32[1, 8]");
  EXPECT_EQ(Rule(OpKind::kReshape).unknown().constant(ints({0, -1, 3})).shape(), "float32[?, ?, 3]");
  EXPECT_EQ(Rule(OpKind::kReshape).in({2, 3}).in({3}, DataType::kInt64).shape(), "float32[?, ?, ?]");
  EXPECT_EQ(Rule(OpKind::kReshape).in({2, 3}).in({kAny}, DataType::kInt64).shape(), "float32[...]");
  EXPECT_EQ(reshape({2, 3}, {4, 2}).error(),
            "node 'n' (Reshape): input 0 'i0' float32[2, 3] (6 elements) cannot be reshaped to [4, 2] (8 elements)");
  EXPECT_THAT(reshape({2, 3}, {4, -1}).error(), HasSubstr("6 elements are not a multiple of 4"));
  EXPECT_THAT(reshape({2, 3}, {-1, -1}).error(), HasSubstr("holds -1 twice"));
  EXPECT_THAT(reshape({2}, {0, 0}).error(), HasSubstr("copies dimension 1"));
  EXPECT_THAT(reshape({2}, {-2}).error(), HasSubstr("holds -2"));
  EXPECT_THAT(reshape({2}, {kFar, kFar}).error(), HasSubstr("holds 9223372036854775807"));
  EXPECT_THAT(reshape({kAny}, {1 << 30, 1 << 30}).error(), HasSubstr("too large"));
  EXPECT_THAT(Rule(OpKind::kReshape).in({2}).constant(filled({1}, 2)).error(), HasSubstr("should hold int64 or int32"));
}

TEST(LayoutRules, MoveDimensions) {
  EXPECT_EQ(Rule(OpKind::kFlatten).in({kAny, 3, 4, 5}).shape(), "float32[?, 60]");
  EXPECT_EQ(Rule(OpKind::kFlatten, {{"axis", int64_t{0}}}).in({2, 3}).shape(), "float32[1, 6]");
  EXPECT_EQ(Rule(OpKind::kFlatten, {{"axis", int64_t{-1}}}).in({2, 3, 4}).shape(), "float32[6, 4]");
  EXPECT_EQ(Rule(OpKind::kSqueeze).in({kAny, 5, 1, 1}).constant(ints({2, -1})).shape(), "float32[?, 5]");
  EXPECT_EQ(Rule(OpKind::kSqueeze).in({1, 5, 1}).shape(), "float32[5]");
  EXPECT_EQ(Rule(OpKind::kSqueeze).in({kAny, 5, 1}).shape(), "float32[...]");
  EXPECT_THAT(Rule(OpKind::kSqueeze).in({2, 5}).constant(ints({1})).error(), HasSubstr("has 5 elements, expected 1"));
  EXPECT_EQ(Rule(OpKind::kUnsqueeze).in({2, 3}).constant(ints({0, -1})).shape(), "float32[1, 2, 3, 1]");
  EXPECT_EQ(Rule(OpKind::kTranspose, {{"perm", Ints{0, 2, 3, 1}}}).in({kAny, 3, 4, 5}).shape(), "float32[?, 4, 5, 3]");
  EXPECT_EQ(Rule(OpKind::kTranspose).in({2, 3}).shape(), "float32[3, 2]");
  EXPECT_THAT(Rule(OpKind::kTranspose, {{"perm", Ints{0, 0}}}).in({2, 3}).error(), HasSubstr("named twice"));
  // The users of perm index arrays with it, so it has one form only.
  for (const Ints& perm : {Ints{0, -1}, Ints{-2, -1}, Ints{1, 2}, Ints{kFar, 0}}) {
    EXPECT_THAT(Rule(OpKind::kTranspose, {{"perm", perm}}).in({2, 3}).error(), HasSubstr("none by a negative number"));
    EXPECT_THAT(Rule(OpKind::kTranspose, {{"perm", perm}}).unknown().error(), HasSubstr("none by a negative number"));
  }
  EXPECT_EQ(Rule(OpKind::kExpand).in({3, 1}).constant(ints({2, 1, 6})).shape(), "float32[2, 3, 6]");
  EXPECT_EQ(Rule(OpKind::kDepthToSpace, {{"blocksize", int64_t{2}}}).in({1, 12, 4, kAny}).shape(),
            "float32[1, 3, 8, ?]");
  EXPECT_THAT(Rule(OpKind::kDepthToSpace, {{"blocksize", int64_t{2}}}).in({1, 6, 4, 4}).error(),
              HasSubstr("6 channels are not a multiple of"));
}

TEST(ConcatRule, AddsAlongItsAxis) {
  const Attributes channels = {{"axis", int64_t{1}}};
  EXPECT_EQ(Rule(OpKind::kConcat, channels).in({kAny, 3, 4}).in({2, 5, kAny}).shape(), "float32[2, 8, 4]");
  EXPECT_EQ(Rule(OpKind::kConcat, channels).in({1, kAny}).in({1, 2}).shape(), "float32[1, ?]");
  EXPECT_EQ(Rule(OpKind::kConcat, channels).in({1, 2}).unknown().shape(), "float32[...]");
  EXPECT_THAT(Rule(OpKind::kConcat, channels).in({1, 2, 4}).in({1, 2, 5}).error(),
              HasSubstr("input 1 'i1' float32[1, 2, 5] differs from input 0 'i0' float32[1, 2, 4] in dimension 2"));
  EXPECT_THAT(Rule(OpKind::kConcat, channels).in({1, 2, 4}).in({1, 2}).error(), HasSubstr("has rank 2, expected 3"));
  EXPECT_THAT(Rule(OpKind::kConcat).in({1}).error(), HasSubstr("attribute axis is missing"));
}

TEST(SplitRule, DividesItsAxis) {
  const auto shapes = [](Rule rule, size_t outputs) {
    std::string out;
    for (const TensorType& t : rule.types(outputs)) out += shape_string(*t.shape);
    return out;
  };
  EXPECT_EQ(shapes(Rule(OpKind::kSplit).in({6, 2}), 3), "[2, 2][2, 2][2, 2]");
  EXPECT_EQ(shapes(Rule(OpKind::kSplit, {{"axis", int64_t{-1}}}).in({kAny, 7}).constant(ints({3, 4})), 2),
            "[?, 3][?, 4]");
  EXPECT_EQ(shapes(Rule(OpKind::kSplit, {{"num_outputs", int64_t{3}}}).in({7}), 3), "[3][3][1]");
  EXPECT_THAT(Rule(OpKind::kSplit).in({5}).constant(ints({3, 4})).error(), HasSubstr("2 sizes for 1 outputs"));
  EXPECT_THAT(error_of([] {
                Rule(OpKind::kSplit).in({5}).constant(ints({3, 4})).types(2);
              }),
              HasSubstr("split [3, 4] sums to 7, but axis 0 of input 0 'i0' float32[5] has 5 elements"));
  EXPECT_THAT(error_of([] { Rule(OpKind::kSplit).in({5}).types(2); }), HasSubstr("cannot be split into 2 equal parts"));
}

TEST(SliceRule, CountsAsNumpy) {
  const auto slice = [](int64_t size, int64_t start, int64_t end, int64_t step) {
    return Rule(OpKind::kSlice)
        .in({size, 9})
        .constant(ints({start}))
        .constant(ints({end}))
        .constant(ints({0}))
        .constant(ints({step}))
        .types()[0]
        .shape->front();
  };
  for (const int64_t step : {-3, -1, 1, 2, 5})
    for (int64_t start = -8; start <= 8; ++start)
      for (int64_t end = -8; end <= 8; ++end) {
        // Python: walk from the clamped start until the clamped end.
        const int64_t n = 5, low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
        const auto place = [&](int64_t v) { return std::clamp(v < 0 ? v + n : v, low, high); };
        int64_t count = 0;
        for (int64_t i = place(start); step > 0 ? i < place(end) : i > place(end); i += step) ++count;
        ASSERT_EQ(slice(n, start, end, step), count) << start << ":" << end << ":" << step;
      }
  EXPECT_EQ(slice(5, 0, kFar, 1), 5);
  EXPECT_EQ(slice(5, -1, std::numeric_limits<int64_t>::min(), -1), 5);
  EXPECT_EQ(slice(5, std::numeric_limits<int64_t>::min(), kFar, kFar), 1);
  EXPECT_EQ(slice(kAny, 0, 2, 1), kAny);
  EXPECT_THAT(error_of([&] { slice(5, 0, 2, 0); }), HasSubstr("step 0 along axis 0"));
  EXPECT_EQ(Rule(OpKind::kSlice).in({4, 5}).constant(ints({1, 1})).constant(ints({3, 9})).shape(), "float32[2, 4]");
  EXPECT_THAT(Rule(OpKind::kSlice).in({4}).constant(ints({1})).constant(ints({3, 9})).error(),
              HasSubstr("different lengths"));
}

TEST(PadRule, AddsAndCrops) {
  EXPECT_EQ(Rule(OpKind::kPad).in({kAny, 3, 4}).constant(ints({0, 1, 2, 0, 1, -1})).shape(), "float32[?, 5, 5]");
  EXPECT_EQ(Rule(OpKind::kPad).in({2, 3}).constant(ints({1, 1})).absent().constant(ints({-1})).shape(),
            "float32[2, 5]");
  EXPECT_THAT(Rule(OpKind::kPad).in({2, 3}).constant(ints({1, 1})).error(), HasSubstr("holds 2 numbers, expected 4"));
  EXPECT_THAT(Rule(OpKind::kPad).in({2}).constant(ints({-2, -1})).error(),
              HasSubstr("removes more than axis 0 has: 2"));
  EXPECT_THAT(Rule(OpKind::kPad).in({2}).constant(ints({kFar, kFar})).error(), HasSubstr("holds 9223372036854775807"));
}

TEST(ResizeRule, TakesScalesOrSizes) {
  const auto scales = [](const std::vector<float>& v) {
    return Tensor::of<float>({static_cast<int64_t>(v.size())}, v);
  };
  EXPECT_EQ(Rule(OpKind::kResize).in({1, 3, 5, kAny}).absent().constant(scales({1, 1, 1.5f, 2})).shape(),
            "float32[1, 3, 7, ?]");
  EXPECT_EQ(
      Rule(OpKind::kResize).in({kAny, 3, 5, 5}).absent().constant(scales({})).constant(ints({1, 3, 9, 8})).shape(),
      "float32[1, 3, 9, 8]");
  const Attributes fit = {{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", std::string("not_larger")}};
  EXPECT_EQ(Rule(OpKind::kResize, fit).in({1, 3, 10, 20}).absent().absent().constant(ints({30, 40})).shape(),
            "float32[1, 3, 20, 40]");
  EXPECT_THAT(Rule(OpKind::kResize).in({1}).error(), HasSubstr("has neither scales nor sizes"));
  EXPECT_THAT(Rule(OpKind::kResize).in({1, 3}).absent().constant(scales({1})).error(),
              HasSubstr("scales has 1 values, expected 2"));
  EXPECT_THAT(Rule(OpKind::kResize).in({4}).absent().constant(scales({-1})).error(),
              HasSubstr("scales holds -1, expected a positive number"));
}

}  // namespace
}  // namespace octet::ir

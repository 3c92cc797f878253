// The evaluator of constants, and the constants that stand for dynamic sizes.
#include "onnx/fold.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "onnx/settle.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Shape;
using ir::Tensor;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

Tensor ints(const Ints& v) {
  return Tensor::of<int64_t>({static_cast<int64_t>(v.size())}, v);
}
Tensor ints(Shape shape, const Ints& v) {
  return Tensor::of<int64_t>(std::move(shape), v);
}
Tensor float_line(const Floats& v) {
  return Tensor::of<float>({static_cast<int64_t>(v.size())}, v);
}

std::vector<Tensor> run(const std::string& op, const std::vector<Tensor>& inputs, const ir::Attributes& attributes = {},
                        size_t outputs = 1) {
  const std::string name = "node";
  FoldRequest request{op, name, attributes, {}, outputs};
  for (const Tensor& t : inputs) request.inputs.push_back(t.empty() ? nullptr : &t);
  ir::MemoryBudget budget(1 << 20);
  EXPECT_TRUE(can_fold(op));
  auto out = fold(request, budget);
  EXPECT_TRUE(out.has_value()) << op;
  return out.value_or(std::vector<Tensor>());
}

const Tensor kMatrix = ints({2, 3}, {0, 1, 2, 3, 4, 5});

TEST(Fold, MovesElements) {
  EXPECT_EQ(run("Transpose", {kMatrix})[0].to_ints(), (Ints{0, 3, 1, 4, 2, 5}));
  const Tensor cube = ints({2, 1, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(run("Transpose", {cube}, {{"perm", Ints{2, 0, 1}}})[0].shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(run("Gather", {kMatrix, ints({2, -3})}, {{"axis", int64_t{1}}})[0].to_ints(), (Ints{2, 0, 5, 3}));
  EXPECT_EQ(run("Gather", {kMatrix, Tensor::scalar<int64_t>(-1)})[0].shape(), Shape{3});
  EXPECT_EQ(run("Concat", {kMatrix, kMatrix}, {{"axis", int64_t{-1}}})[0].to_ints(),
            (Ints{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(run("Tile", {kMatrix, ints({2, 2})})[0].shape(), (Shape{4, 6}));
  EXPECT_EQ(run("Tile", {ints({1, 2}), ints({2})})[0].to_ints(), (Ints{1, 2, 1, 2}));
  EXPECT_EQ(run("Expand", {ints({2, 1}, {7, 8}), ints({3})})[0].to_ints(), (Ints{7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(run("Reshape", {kMatrix, ints({0, -1, 1})})[0].shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(run("Flatten", {kMatrix}, {{"axis", int64_t{0}}})[0].shape(), (Shape{1, 6}));
  EXPECT_EQ(run("Unsqueeze", {kMatrix, ints({0, -1})})[0].shape(), (Shape{1, 2, 3, 1}));
  EXPECT_EQ(run("Squeeze", {cube, Tensor()})[0].shape(), (Shape{2, 3}));
  const auto parts = run("Split", {kMatrix, ints({1, 2})}, {{"axis", int64_t{1}}}, 2);
  EXPECT_EQ(parts[0].to_ints(), (Ints{0, 3}));
  EXPECT_EQ(parts[1].to_ints(), (Ints{1, 2, 4, 5}));
}

TEST(Fold, SlicesAsNumpyDoes) {
  const Tensor x = ints({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return run("Slice", {x, ints({start}), ints({end}), ints({0}), ints({step})})[0].to_ints();
  };
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(slice(2, 5, 1), (Ints{2, 3, 4}));
  EXPECT_EQ(slice(-3, kMax, 1), (Ints{7, 8, 9}));
  EXPECT_EQ(slice(-1, kMin, -4), (Ints{9, 5, 1}));
  EXPECT_EQ(slice(kMax, kMin, -9), (Ints{9, 0}));
  EXPECT_EQ(slice(1, 100, 4), (Ints{1, 5, 9}));
  EXPECT_EQ(slice(5, 5, 1), Ints{});
  EXPECT_EQ(slice(7, 2, 1), Ints{});
  EXPECT_EQ(slice(0, kMax, kMax), Ints{0});
}

TEST(Fold, Arithmetic) {
  EXPECT_EQ(run("Div", {ints({7, -7, 7}), ints({2, 2, -2})})[0].to_ints(), (Ints{3, -3, -3}));
  EXPECT_EQ(run("Mod", {ints({7, -7, 7, -7}), ints({3, 3, -3, -3})})[0].to_ints(), (Ints{1, 2, -2, -1}));
  EXPECT_EQ(run("Mul", {kMatrix, ints({10})})[0].to_ints(), (Ints{0, 10, 20, 30, 40, 50}));
  EXPECT_EQ(run("Div", {float_line({1, 2}), float_line({3, 7})})[0].to_floats(), (Floats{1.0f / 3, 2.0f / 7}));
  EXPECT_EQ(run("Max", {ints({1, 5}), ints({3}), ints({2, 9})})[0].to_ints(), (Ints{3, 9}));
  EXPECT_EQ(run("Floor", {float_line({1.5f, -1.5f})})[0].to_floats(), (Floats{1, -2}));
  EXPECT_EQ(run("Round", {float_line({0.5f, 1.5f, 2.5f})})[0].to_floats(), (Floats{0, 2, 2}));
  EXPECT_EQ(run("Equal", {ints({1, 2}), ints({1, 3})})[0].to_ints(), (Ints{1, 0}));
  const Tensor yes_no = Tensor::of<bool>({2}, std::span<const bool>(std::array{true, false}));
  EXPECT_EQ(run("Where", {yes_no, ints({1, 2}), ints({-1})})[0].to_ints(), (Ints{1, -1}));
  EXPECT_EQ(run("Not", {yes_no})[0].to_ints(), (Ints{0, 1}));
  EXPECT_EQ(run("Cast", {float_line({1.9f, -1.9f, 1e30f})}, {{"to", int64_t{7}}})[0].to_ints(),
            (Ints{1, -1, std::numeric_limits<int64_t>::max()}));
  EXPECT_EQ(run("Cast", {ints({2, 0})}, {{"to", int64_t{9}}})[0].data_type(), DataType::kBool);
  EXPECT_EQ(
      run("Range", {Tensor::scalar<int64_t>(5), Tensor::scalar<int64_t>(0), Tensor::scalar<int64_t>(-2)})[0].to_ints(),
      (Ints{5, 3, 1}));
  EXPECT_EQ(run("ConstantOfShape", {ints({2})}, {{"value", ints({3})}})[0].to_ints(), (Ints{3, 3}));
  EXPECT_EQ(run("ConstantOfShape", {ints(Ints{})})[0].to_floats(), Floats{0});
}

TEST(Fold, Reductions) {
  EXPECT_EQ(run("ReduceProd", {kMatrix, ints({0})}, {{"keepdims", int64_t{0}}})[0].to_ints(), (Ints{0, 4, 10}));
  EXPECT_EQ(run("ReduceSum", {kMatrix, ints({1})})[0].to_ints(), (Ints{3, 12}));
  EXPECT_EQ(run("ReduceSum", {kMatrix, ints({1})})[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(run("ReduceMax", {kMatrix})[0].to_ints(), Ints{5});
  EXPECT_EQ(run("ReduceMean", {float_line({1, 2, 6})}, {{"keepdims", int64_t{0}}})[0].to_floats(), Floats{3});
}

TEST(Fold, RefusesWhatDoesNotFit) {
  EXPECT_THROW(run("Gather", {kMatrix, ints({2})}), UserError);
  EXPECT_THROW(run("Div", {ints({1}), ints({0})}), UserError);
  EXPECT_THROW(run("Reshape", {kMatrix, ints({4, -1})}), UserError);
  EXPECT_THROW(run("Reshape", {kMatrix, ints({-1, -1})}), UserError);
  EXPECT_THROW(run("Add", {kMatrix, ints({1, 2})}), UserError);
  EXPECT_THROW(run("Expand", {ints({1}), ints({1 << 20})}), UserError);  // past the budget
  EXPECT_THROW(run("Concat", {kMatrix, ints({1})}, {{"axis", int64_t{0}}}), UserError);
  EXPECT_THROW(run("Transpose", {kMatrix}, {{"perm", Ints{0, 0}}}), UserError);
  EXPECT_THROW(run("Transpose", {kMatrix}, {{"perm", Ints{0, -1}}}), UserError);
  EXPECT_FALSE(can_fold("Conv"));
}

TEST(Settle, Reshape) {
  // batch kept, rest stated
  EXPECT_EQ(settle_reshape({{{2, 3, 4}, {2, 12}, {2, 12}}, {{5, 3, 4}, {5, 12}, {5, 12}}}), (Ints{0, 12}));
  // batch moved to the end
  EXPECT_EQ(settle_reshape({{{2, 3, 4}, {12, 2}, {12, 2}}, {{5, 3, 4}, {12, 5}, {12, 5}}}), (Ints{12, -1}));
  // -1 is needed for the batch, so that of the file is written out
  EXPECT_EQ(settle_reshape({{{2, 6}, {3, 2, 2}, {3, 2, -1}}, {{5, 6}, {3, 5, 2}, {3, 5, -1}}}), (Ints{3, -1, 2}));
  // two dynamic sizes in new places
  EXPECT_EQ(settle_reshape({{{2, 3}, {3, 2}, {3, 2}}, {{5, 7}, {7, 5}, {7, 5}}}), std::nullopt);
}

TEST(Settle, ExpandSliceResize) {
  EXPECT_EQ(settle_expand({{{2, 1}, {2, 4}, {2, 4}}, {{5, 1}, {5, 4}, {5, 4}}}), (Ints{1, 4}));
  EXPECT_EQ(settle_expand({{{1, 4}, {2, 4}, {2, 4}}, {{1, 4}, {5, 4}, {5, 4}}}), std::nullopt);
  const LaneViews to_end = {{{2, 6}, {1, 6}, {2}}, {{5, 6}, {4, 6}, {5}}};
  EXPECT_EQ(settle_slice_bound(to_end, {0}), Ints{std::numeric_limits<int64_t>::max()});
  EXPECT_EQ(settle_slice_bound({{{4}, {3}, {3}}, {{9}, {8}, {8}}}, {0}), Ints{-1});
  EXPECT_EQ(settle_slice_bound({{{4}, {2}, {2}}, {{10}, {5}, {5}}}, {0}), std::nullopt);
  EXPECT_EQ(settle_resize({{{2, 8}, {2, 12}, {2, 12}}, {{5, 16}, {5, 24}, {5, 24}}}), (Floats{1, 1.5f}));
  EXPECT_EQ(settle_resize({{{2, 8}, {2, 20}, {2, 20}}, {{5, 16}, {5, 20}, {5, 20}}}), std::nullopt);
}

}  // namespace
}  // namespace octet::onnx

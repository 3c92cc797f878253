#include "app/plain_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ir/evaluate_graph.h"

namespace octet::app {
namespace {

using ir::OpKind;
using ir::Tensor;

std::vector<float> numbers(size_t count, float step) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = std::sin(static_cast<float>(i) * step);
  return out;
}

// A convolution with quantized weights, halves of it, their sum, a product.
ir::Graph small_network() {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{2, 3, 5, 4}});
  ir::Value* w = g.add_constant("w", Tensor::of<float>({4, 3, 3, 3}, numbers(108, 0.7f)));
  ir::Value* q =
      g.add(OpKind::kFakeQuantize, "q",
            {w, g.add_constant("scale", Tensor::scalar(0.05f)), g.add_constant("zero", Tensor::scalar<int64_t>(0))},
            {{"qmin", int64_t{-8}}, {"qmax", int64_t{7}}});
  ir::Value* conv = g.add(OpKind::kConv, "conv", {x, q}, {{"pads", std::vector<int64_t>(4, 1)}});
  ir::Node* halves = g.add_node(OpKind::kSplit, "halves", {conv}, {"left", "right"}, {{"axis", int64_t{1}}});
  ir::Value* sum = g.add(OpKind::kAdd, "sum", {halves->output(0), halves->output(1)});
  ir::Value* flat = g.add(OpKind::kFlatten, "flat", {sum}, {{"axis", int64_t{1}}});
  ir::Value* v = g.add_constant("v", Tensor::of<float>({40, 3}, numbers(120, 0.3f)));
  g.add_output(g.add(OpKind::kMatMul, "y", {flat, v}));
  g.add_output(conv);
  return g;
}

TEST(PlainReference, ComputesWhatTheOperatorsSay) {
  const ir::Graph g = small_network();
  const std::vector<float> x = numbers(120, 0.11f);
  const std::vector<Tensor> expected = ir::evaluate_graph(g, {Tensor::of<float>({2, 3, 5, 4}, x)});
  const PlainReference reference(3);
  const std::vector<FloatArray> pieces = reference.pieces(g, 0)->run({{{2, 3, 5, 4}, x}});
  const std::vector<FloatArray> exact = reference.exact(g)->run({{{2, 3, 5, 4}, x}});
  ASSERT_EQ(pieces.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(pieces[i].shape, expected[i].shape());
    EXPECT_EQ(pieces[i].values, expected[i].to_floats());
    for (size_t k = 0; k < pieces[i].values.size(); ++k)
      EXPECT_NEAR(exact[i].values[k], pieces[i].values[k], 1e-5 * (1 + std::abs(pieces[i].values[k])));
  }
  EXPECT_EQ(reference.whole(g), nullptr);
}

// The scores as float32 may sum them otherwise: off, but by no more than that.
TEST(PlainReference, ScoresAreOffAsFarAsAnotherOrderOfSummation) {
  const ir::Graph g = small_network();
  const std::vector<float> x = numbers(120, 0.11f);
  const PlainReference reference(1);
  const std::vector<float> exact = reference.exact(g)->run({{{2, 3, 5, 4}, x}}).at(0).values;
  const auto runs = reference.pieces(g, 1)->run({{{2, 3, 5, 4}, x}});
  double largest = 0;
  for (size_t i = 0; i < exact.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(runs[0].values[i]) - exact[i]));
  EXPECT_GT(largest, 0);
  // Each sum has at most 27 and then 40 products of numbers up to 1 and 8 in size.
  EXPECT_LT(largest, 40 * 27 * 2 * std::numeric_limits<float>::epsilon());
}

}  // namespace
}  // namespace octet::app

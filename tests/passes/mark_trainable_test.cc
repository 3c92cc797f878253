#include "passes/mark_trainable.h"

#include <gtest/gtest.h>

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Tensor;

Tensor filled(ir::Shape shape, float value) {
  return Tensor::of<float>(shape, std::vector<float>(static_cast<size_t>(ir::element_count(shape)), value));
}

TEST(MarkTrainable, MarksWeightsBiasesAndNormsButNoStatisticsNorScales) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 2, 4, 4}});
  ir::Value* w = g.add_constant("w", filled({3, 2, 3, 3}, 1));
  ir::Value* s = g.add_constant("w_scale", filled({3}, 0.1f));
  ir::Value* z = g.add_constant("w_zero", Tensor::of<int8_t>({3}, std::vector<int8_t>{0, 0, 0}));
  ir::Value* wq = g.add(OpKind::kFakeQuantize, "wq", {w, s, z}, {{"axis", int64_t{0}}});
  ir::Value* b = g.add_constant("b", filled({3}, 0));
  ir::Value* y = g.add(OpKind::kConv, "conv", {x, wq, b}, {{"kernel_shape", std::vector<int64_t>{3, 3}}});
  ir::Value* gamma = g.add_constant("gamma", filled({3}, 1));
  ir::Value* beta = g.add_constant("beta", filled({3}, 0));
  ir::Value* mean = g.add_constant("mean", filled({3}, 0));
  ir::Value* var = g.add_constant("var", filled({3}, 1));
  y = g.add(OpKind::kBatchNormalization, "bn", {y, gamma, beta, mean, var});
  ir::Value* offset = g.add_constant("offset", filled({3, 1, 1}, 1));
  y = g.add(OpKind::kAdd, "add", {y, offset});
  ir::Value* embedding = g.add_constant("embedding", filled({3, 1, 1}, 1), /*trainable=*/true);  // says the file
  g.add_output(g.add(OpKind::kAdd, "embedded", {y, embedding}));

  EXPECT_EQ(mark_trainable(g), 5);
  for (const ir::Value* v : {w, b, gamma, beta, embedding}) EXPECT_TRUE(v->trainable) << v->name;
  for (const ir::Value* v : {s, z, mean, var, offset}) EXPECT_FALSE(v->trainable) << v->name;
}

TEST(MarkTrainable, MarksTheBiasThatAnAddGivesToAProduct) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 4, 3}});
  ir::Value* position = g.add_constant("position", filled({1, 4, 3}, 1));
  ir::Value* w = g.add_constant("w", filled({3, 3}, 1));
  ir::Value* b = g.add_constant("b", filled({3}, 0));
  ir::Value* offset = g.add_constant("offset", filled({3}, 0));
  ir::Value* other = g.add_constant("other", filled({1, 4, 3}, 0));
  x = g.add(OpKind::kMatMul, "product", {g.add(OpKind::kAdd, "with_position", {x, position}), w});
  x = g.add(OpKind::kRelu, "relu", {g.add(OpKind::kAdd, "biased", {b, x})});
  x = g.add(OpKind::kMatMul, "second", {g.add(OpKind::kAdd, "shifted", {x, offset}), w});
  g.add_output(g.add(OpKind::kAdd, "rows", {x, other}));
  EXPECT_EQ(mark_trainable(g), 2);
  EXPECT_TRUE(w->trainable);
  EXPECT_TRUE(b->trainable);
}

}  // namespace
}  // namespace octet::passes

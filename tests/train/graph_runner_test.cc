#include "train/graph_runner.h"

#include <gtest/gtest.h>

namespace octet::train {
namespace {

using ir::OpKind;

TEST(GraphRunner, TakesSeveralInputs) {
  ir::Graph g;
  ir::Value* a = g.add_input("a", {ir::DataType::kFloat32, ir::Shape{2}});
  ir::Value* b = g.add_input("b", {ir::DataType::kFloat32, ir::Shape{2}});
  g.add_output(g.add(OpKind::kSub, "difference", {a, b}));
  GraphRunner runner(g);
  const std::vector<float> x = {3, 5}, y = {1, 7};
  const std::vector<FloatArray> out = runner.run({{{2}, x}, {{2}, y}});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].values, (std::vector<float>{2, -2}));
}

}  // namespace
}  // namespace octet::train

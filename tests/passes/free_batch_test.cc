#include "passes/free_batch.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/infer.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Shape;
using ir::Tensor;

using Build = std::function<ir::Value*(ir::Graph&, ir::Value*)>;

// A network of an input [batch, 8, 4, 4] that ends in `build`.
ir::Graph network(int64_t batch, const Build& build) {
  ir::Graph g;
  ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, Shape{batch, 8, 4, 4}});
  g.add_output(build(g, g.add(OpKind::kRelu, "relu", {x})));
  return g;
}

ir::Value* ints(ir::Graph& g, const std::string& name, const std::vector<int64_t>& values) {
  return g.add_constant(name, Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

ir::Value* reshape(ir::Graph& g, ir::Value* x, const std::string& name, const std::vector<int64_t>& shape) {
  return g.add(OpKind::kReshape, name, {x, ints(g, name + "_shape", shape)});
}

TEST(FreeBatch, FreesWhatTreatsImagesApart) {
  const std::vector<Build> free = {
      [](ir::Graph& g, ir::Value* x) { return g.add(OpKind::kFlatten, "y", {x}); },
      [](ir::Graph& g, ir::Value* x) {
        return reshape(g, x, "y", {1, -1});
      },
      [](ir::Graph& g, ir::Value* x) {
        return reshape(g, x, "y", {-1, 128});
      },
      [](ir::Graph& g, ir::Value* x) {  // as torch.onnx.export writes a flatten
        return g.add(OpKind::kReshape, "y", {x, ints(g, "y_shape", {1, 128})}, {{"allowzero", int64_t{1}}});
      },
      [](ir::Graph& g, ir::Value* x) {  // channel shuffle
        ir::Value* t = g.add(OpKind::kTranspose, "t", {reshape(g, x, "a", {1, 2, 4, 4, 4})},
                             {{"perm", std::vector<int64_t>{0, 2, 1, 3, 4}}});
        return reshape(g, t, "y", {1, 8, 4, 4});
      },
      [](ir::Graph& g, ir::Value* x) {
        return g.add(OpKind::kSoftmax, "y", {x}, {{"axis", int64_t{1}}});
      }};
  for (size_t i = 0; i < free.size(); ++i) {
    ir::Graph g = network(1, free[i]);
    EXPECT_TRUE(free_batch(g)) << i;
    EXPECT_EQ(g.inputs()[0]->type.shape->front(), ir::kDynamic);
    EXPECT_EQ(g.outputs()[0]->type.shape->front(), ir::kDynamic);
    ir::set_batch(g, 5);
    EXPECT_EQ(g.outputs()[0]->type.shape->front(), 5) << i;
  }
}

TEST(FreeBatch, LeavesWhatGoesOverTheImages) {
  const auto reduce = [](bool keep) {
    return [keep](ir::Graph& g, ir::Value* x) {
      return g.add(OpKind::kReduceSum, "y", {x, ints(g, "axes", {0})}, {{"keepdims", int64_t{keep}}});
    };
  };
  const std::vector<Build> fixed = {
      reduce(true),
      reduce(false),
      [](ir::Graph& g, ir::Value* x) {
        return g.add(OpKind::kSoftmax, "y", {x}, {{"axis", int64_t{0}}});
      },
      [](ir::Graph& g, ir::Value* x) {
        return g.add(OpKind::kTranspose, "y", {x}, {{"perm", std::vector<int64_t>{1, 0, 2, 3}}});
      },
      [](ir::Graph& g, ir::Value* x) {
        return reshape(g, x, "y", {8, 16});
      },
      [](ir::Graph& g, ir::Value* x) {
        return reshape(g, x, "y", {-1, 16});
      },
      [](ir::Graph& g, ir::Value* x) {
        return g.add(OpKind::kSqueeze, "y", {x, ints(g, "axes", {0})});
      },
      [](ir::Graph& g, ir::Value* x) {  // sizes of one image meet the channels
        ir::Value* mean =
            g.add(OpKind::kReduceMean, "m", {x}, {{"axes", std::vector<int64_t>{1, 2, 3}}, {"keepdims", int64_t{0}}});
        return g.add(OpKind::kMul, "y", {mean, reshape(g, mean, "row", {1, 1})});
      }};
  for (size_t i = 0; i < fixed.size(); ++i) {
    ir::Graph g = network(1, fixed[i]);
    EXPECT_FALSE(free_batch(g)) << i;
    EXPECT_EQ(g.inputs()[0]->type.shape->front(), 1);
    EXPECT_NE(g.find_node("y"), nullptr);
  }
}

TEST(FreeBatch, AnOpenBatchStaysAsItIs) {
  ir::Graph g = network(ir::kDynamic, [](ir::Graph& g, ir::Value* x) { return g.add(OpKind::kFlatten, "y", {x}); });
  EXPECT_TRUE(free_batch(g));
}

}  // namespace
}  // namespace octet::passes

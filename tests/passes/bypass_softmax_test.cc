#include "passes/bypass_softmax.h"

#include <gtest/gtest.h>

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Tensor;

struct Network {
  ir::Graph g;
  ir::Value* logits;
  // [N, 4], or [N, 4, 1, 1].
  explicit Network(size_t rank = 2) {
    ir::Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 4, 6, 6}});
    logits = g.add(OpKind::kGlobalAveragePool, "pool", {x});
    if (rank == 2) logits = g.add(OpKind::kFlatten, "logits", {logits});
  }
};

ir::Value* quantized(ir::Graph& g, ir::Value* v) {
  return g.add(OpKind::kFakeQuantize, "quantized",
               {v, g.add_constant("scale", Tensor::scalar(0.01f)), g.add_constant("zero", Tensor::scalar<int8_t>(0))});
}

TEST(BypassSoftmax, GivesTheLogitsInTheShapeOfTheOutput) {
  for (OpKind kind : {OpKind::kSoftmax, OpKind::kLogSoftmax}) {
    Network n;
    n.g.add_output(n.g.add(OpKind::kIdentity, "y", {n.g.add(kind, "p", {n.logits}, {{"axis", int64_t{1}}})}));
    EXPECT_TRUE(bypass_softmax(n.g));
    EXPECT_EQ(n.g.find_node("p"), nullptr);
    EXPECT_EQ(n.g.outputs()[0]->producer->input(0), n.logits);
    EXPECT_FALSE(bypass_softmax(n.g));
  }
  Network image(4);
  ir::Value* p = image.g.add(OpKind::kSoftmax, "p", {image.logits}, {{"axis", int64_t{1}}});
  image.g.add_output(image.g.add(OpKind::kFlatten, "y", {quantized(image.g, p)}));
  EXPECT_TRUE(bypass_softmax(image.g));
  EXPECT_EQ(image.g.outputs()[0]->name, "y");
  EXPECT_EQ(*image.g.outputs()[0]->type.shape, (ir::Shape{ir::kDynamic, 4}));
  EXPECT_EQ(image.g.find_node("quantized"), nullptr);
  EXPECT_EQ(image.g.outputs()[0]->producer->input(0), image.logits);
  Network logarithm;
  logarithm.g.add_output(
      logarithm.g.add(OpKind::kLog, "y", {logarithm.g.add(OpKind::kSoftmax, "p", {logarithm.logits})}));
  EXPECT_TRUE(bypass_softmax(logarithm.g));
  EXPECT_EQ(logarithm.g.outputs()[0], logarithm.logits);
}

TEST(BypassSoftmax, LeavesWhatIsNoDistributionOverTheClasses) {
  Network images;  // over the batch
  images.g.add_output(images.g.add(OpKind::kSoftmax, "p", {images.logits}, {{"axis", int64_t{0}}}));
  EXPECT_FALSE(bypass_softmax(images.g));
  Network inside;  // not at the end
  inside.g.add_output(inside.g.add(OpKind::kRelu, "y", {inside.g.add(OpKind::kSoftmax, "p", {inside.logits})}));
  EXPECT_FALSE(bypass_softmax(inside.g));
  Network two;
  two.g.add_output(two.g.add(OpKind::kSoftmax, "p", {two.logits}));
  two.g.add_output(two.logits);
  EXPECT_FALSE(bypass_softmax(two.g));
  Network map;  // of every pixel
  map.g.add_output(map.g.add(OpKind::kSoftmax, "p", {map.g.inputs()[0]}, {{"axis", int64_t{1}}}));
  EXPECT_FALSE(bypass_softmax(map.g));
}

}  // namespace
}  // namespace octet::passes

#include "lower/canonicalize.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/infer.h"
#include "ir/verify.h"

namespace octet::lower {
namespace {

using ir::OpKind;

TEST(MergeQuantizers, AlsoThoseOfQuantizedTensors) {
  ir::Graph graph;
  ir::Value* x = graph.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 4, 3, 3}});
  const auto quantized = [&](ir::Value* v, const std::string& name, float scale) {
    return graph.add(OpKind::kFakeQuantize, name,
                     {v, graph.add_constant(name + ".scale", ir::Tensor::scalar(scale)),
                      graph.add_constant(name + ".zero", ir::Tensor::scalar<int8_t>(0))});
  };
  // a and b are one, and so are what quantizes each of them again.
  ir::Value *a = quantized(x, "a", 0.5f), *b = quantized(x, "b", 0.5f);
  for (ir::Value* v : {quantized(a, "a2", 0.25f), quantized(b, "b2", 0.25f), quantized(b, "b3", 0.75f)})
    graph.add_output(graph.add(OpKind::kRelu, v->name + ".relu", {v}));
  merge_quantizers(graph);
  ir::verify(graph);
  std::vector<std::string> left;
  for (const auto& node : graph.nodes())
    if (node->kind == OpKind::kFakeQuantize) left.push_back(node->name);
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"a", "a2", "b3"}));
}

}  // namespace
}  // namespace octet::lower

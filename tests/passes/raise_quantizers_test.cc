#include "passes/raise_quantizers.h"

#include <gtest/gtest.h>

#include "ir/evaluate_graph.h"
#include "ir/query.h"
#include "ir/verify.h"
#include "passes/block_builder.h"

namespace octet::passes {
namespace {

using ir::OpKind;

ir::Value* quantized(BlockBuilder& b, ir::Value* x, const std::string& name, float scale) {
  auto* s = b.graph.add_constant(name + "/scale", ir::Tensor::scalar(scale));
  auto* z = b.graph.add_constant(name + "/zero_point", ir::Tensor::of<int8_t>({}, {0}));
  return b.op(OpKind::kFakeQuantize, name, {x, s, z}, {{"state", std::string(ir::kFrozen)}});
}

TEST(RaiseQuantizers, OverPoolsConcatsAndMovesOfData) {
  BlockBuilder b({2, 4, 8, 8});
  auto* left = b.relu(b.conv(b.x, "left", 3, 3), "left_relu");
  auto* right = b.conv(b.x, "right", 5);
  auto* joined = b.op(OpKind::kConcat, "joined", {left, right}, {{"axis", int64_t{1}}});
  auto* pool = b.op(OpKind::kMaxPool, "pool", {joined}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  auto* turned = b.op(OpKind::kTranspose, "turned", {pool}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  b.graph.add_output(b.conv(quantized(b, turned, "of_conv", 0.03f), "last", 2));
  b.graph.add_output(b.relu(joined, "other_reader"));
  b.graph.add_output(quantized(b, pool, "of_output", 0.5f));
  ir::Graph raised = b.graph.clone();
  EXPECT_EQ(raise_quantizers(raised), 3);
  ir::verify(raised);
  int behind_sums = 0;
  for (const auto& node : raised.nodes()) {
    if (node->kind != OpKind::kFakeQuantize || raised.is_output(node->output())) continue;
    const OpKind maker = node->input(0)->producer->kind;
    EXPECT_TRUE(maker == OpKind::kRelu || maker == OpKind::kConv) << node->name;
    ++behind_sums;
  }
  EXPECT_EQ(behind_sums, 2);
  EXPECT_EQ(raised.find_node("of_output")->input(0)->name, "pool");
  const ir::Tensor x = ir::Tensor::of<float>({2, 4, 8, 8}, b.random(2 * 4 * 64));
  const auto before = ir::evaluate_graph(b.graph, {x}), after = ir::evaluate_graph(raised, {x});
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].to_floats(), after[i].to_floats());
}

}  // namespace
}  // namespace octet::passes

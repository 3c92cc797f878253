#include "passes/partial_quantization.h"

#include <gtest/gtest.h>

#include "passes/block_builder.h"
#include "passes/evaluate.h"
#include "passes/place_fake_quant.h"
#include "passes/set_scales.h"

namespace octet::passes {
namespace {

// A sum reads a tensor that a convolution reads, too, by the same quantizer.
TEST(PartialQuantization, OthersReadWhatLiesBeforeTheQuantizers) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.x, "a", 4, 3, true), "ra");
  b.graph.add_output(b.gemm(b.op(ir::OpKind::kFlatten, "flat",
                                 {b.op(ir::OpKind::kGlobalAveragePool, "mean", {b.add(b.conv(y, "b", 4), y, "sum")})},
                                 {{"axis", int64_t{1}}}),
                            "fc", 3));
  const Outputs whole = outputs_of(b.graph);
  place_fake_quant(b.graph);
  quant::CalibrationSet seen(b.graph);
  for (const std::string& name : seen.names()) seen.observe(name, std::vector<float>{-2, 2});
  set_scales(b.graph, seen.ranges({.method = quant::CalibrationMethod::kMax}));
  const std::vector<std::string> nodes = quantized_nodes(b.graph);
  EXPECT_EQ(nodes, (std::vector<std::string>{"a", "b", "sum", "mean", "fc"}));

  ir::Graph none = quantized_in_part(b.graph, {});
  EXPECT_EQ(difference(outputs_of(none), whole), 0);
  for (const auto& node : none.nodes()) EXPECT_NE(node->kind, ir::OpKind::kFakeQuantize);

  ir::Graph all = quantized_in_part(b.graph, {nodes.begin(), nodes.end()});
  EXPECT_EQ(difference(outputs_of(all), outputs_of(b.graph)), 0);

  ir::Graph one = quantized_in_part(b.graph, {"b"});
  ir::verify(one);
  EXPECT_EQ(quantized_nodes(one), std::vector<std::string>{"b"});
  EXPECT_EQ(one.find_node("sum")->input(1)->name, "ra");
  const double alone = difference(outputs_of(one), whole), together = difference(outputs_of(all), whole);
  EXPECT_GT(alone, 0);
  EXPECT_LT(alone, together);
}

}  // namespace
}  // namespace octet::passes

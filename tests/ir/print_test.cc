// The printed form of a graph that has every kind of thing in it, against an approved file. To approve a change, run
// with OCTET_APPROVE=1 and look at the difference in git.
#include "ir/print.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/files.h"
#include "ir/infer.h"
#include "ir/summary.h"
#include "ir/test_graph.h"

namespace octet::ir {
namespace {

void expect_approved(const std::string& file, const std::string& actual) {
  const std::string path = OCTET_SOURCE_DIR "/tests/ir/golden/" + file;
  const char* approve = std::getenv("OCTET_APPROVE");
  if (approve && *approve == '1') std::ofstream(path, std::ios::binary) << actual;
  EXPECT_EQ(actual, read_file(path)) << path;
}

Graph sample() {
  Graph graph;
  graph.name = "sample";
  graph.metadata = {{"stage", "qat"}, {"note", "line\nbreak \"quoted\""}};
  using Ints = std::vector<int64_t>;
  Value* x = graph.add_input("input", floats({kDynamic, 4, 8, 8}));
  Value* w = graph.add_constant("conv.weight", filled({6, 4, 3, 3}, 0.25f), true);
  Value* scale = graph.add_constant("conv.weight_scale", filled({6}, 0.1f));
  Value* zero = graph.add_constant("conv.weight_zero_point", Tensor::of<int8_t>({6}, std::vector<int8_t>(6)));
  Value* wq = graph.add(OpKind::kFakeQuantize, "conv.weight_fq", {w, scale, zero},
                        {{"axis", int64_t{0}}, {"qmin", int64_t{-127}}, {"state", std::string(kFrozen)}});
  Value* bias = graph.add_constant("conv.bias", filled({6}, -1e-7f), true);
  Value* y = graph.add(OpKind::kConv, "conv", {x, wq, bias}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  Value* high = graph.add_constant("six", Tensor::scalar<float>(6));
  y = graph.add(OpKind::kClip, "relu6", {y, nullptr, high});
  Node* split = graph.add_node(OpKind::kSplit, "two halves, split", {y}, {"a", "b"}, {{"axis", int64_t{1}}});
  infer_node(*split);
  Value* sum = graph.add(OpKind::kAdd, "sum", {split->output(0), split->output(1)});
  Value* target = graph.add_constant("target", ints({0, -1}));
  Value* flat = graph.add(OpKind::kReshape, "flat", {sum, target});
  Value* fc = graph.add_constant("fc.weight", filled({2, 48}, 0), true);
  Node* gemm = graph.add_node(OpKind::kGemm, "fc", {flat, fc}, {"logits"}, {{"transB", int64_t{1}}, {"alpha", 0.5f}});
  infer_node(*gemm);
  graph.add_output(gemm->output());
  return graph;
}

TEST(Print, MatchesTheApprovedText) {
  expect_approved("sample.txt", to_text(sample()));
}

TEST(Print, IsTheSameForAClone) {
  const Graph graph = sample();
  EXPECT_EQ(to_text(graph.clone()), to_text(graph));
}

TEST(Print, ShowsEveryAttributeType) {
  EXPECT_EQ(attribute_text(int64_t{-3}), "-3");
  EXPECT_EQ(attribute_text(0.1f), "0.1");
  EXPECT_EQ(attribute_text(std::string("a\"\\\x01")), "\"a\\\"\\\\\\x01\"");
  EXPECT_EQ(attribute_text(std::vector<int64_t>{1, 2}), "[1, 2]");
  EXPECT_EQ(attribute_text(std::vector<float>{1.5f, 1e30f}), "[1.5, 1e+30]");
  EXPECT_EQ(attribute_text(std::vector<std::string>{"a", "b"}), "[\"a\", \"b\"]");
  EXPECT_EQ(attribute_text(ints({4, 5})), "int64[2] = {4, 5}");
  EXPECT_EQ(attribute_text(filled({9})), "float32[9]");
}

TEST(Summary, TableMatchesTheApprovedText) {
  expect_approved("summary.txt", summary_table(summarize(sample())));
}

TEST(Summary, CountsParametersAndMacs) {
  const GraphSummary s = summarize(sample());
  ASSERT_EQ(s.nodes.size(), 7u);
  const NodeSummary& conv = s.nodes[1];
  EXPECT_EQ(conv.name, "conv");
  EXPECT_EQ(conv.parameters, 6 * 4 * 9 + 6);  // through the FakeQuantize node
  EXPECT_EQ(conv.macs, 6 * 4 * 4 * 4 * 9);    // 6 x 4 x 4 outputs of 4 x 9 products
  EXPECT_EQ(s.nodes[0].parameters, 0);
  EXPECT_EQ(s.nodes.back().macs, 96);
  EXPECT_EQ(s.parameters, 6 * 4 * 9 + 6 + 96);
  EXPECT_EQ(s.macs, 6 * 4 * 4 * 4 * 9 + 96);
  EXPECT_EQ(conv.inputs.size(), 2u);  // the activation and the quantized weight
  EXPECT_EQ(type_string(s.outputs.at(0).type), "float32[?, 2]");
}

TEST(Summary, SharedWeightsCountOnceAndUnknownSizesAreNotGuessed) {
  Graph graph;
  Value* x = graph.add_input("x", floats({1, 4}));
  Value* w = graph.add_constant("w", filled({4, 4}), true);
  Value* y = graph.add(OpKind::kMatMul, "m1", {x, w});
  y = graph.add(OpKind::kMatMul, "m2", {y, w});
  graph.add_output(y);
  EXPECT_EQ(summarize(graph).parameters, 16);
  EXPECT_EQ(summarize(graph).macs, 32);

  Graph dynamic;
  Value* image = dynamic.add_input("x", floats({kDynamic, 1, kDynamic, 8}));
  dynamic.add_output(dynamic.add(OpKind::kConv, "c", {image, dynamic.add_constant("w", filled({1, 1, 1, 1}))}));
  EXPECT_FALSE(summarize(dynamic).macs.has_value());
  EXPECT_EQ(summarize(dynamic).parameters, 1);  // a weight is a parameter whatever its trainable flag
}

TEST(Summary, CountsEveryWeightedKind) {
  const auto macs = [](OpKind kind, Shape x, Shape w, Attributes attributes) {
    Graph graph;
    Value* in = graph.add_input("x", floats(std::move(x)));
    graph.add_output(graph.add(kind, "n", {in, graph.add_constant("w", filled(w))}, std::move(attributes)));
    return summarize(graph).macs.value();
  };
  // Depthwise: each of 8 x 5 x 5 outputs sums 9 products.
  EXPECT_EQ(macs(OpKind::kConv, {1, 8, 7, 7}, {8, 1, 3, 3}, {{"group", int64_t{8}}}), 8 * 25 * 9);
  EXPECT_EQ(macs(OpKind::kConvTranspose, {1, 8, 7, 7}, {8, 3, 2, 2}, {}), 8 * 49 * 3 * 4);
  EXPECT_EQ(macs(OpKind::kGemm, {5, 3}, {5, 2}, {{"transA", int64_t{1}}}), 3 * 2 * 5);
  EXPECT_EQ(macs(OpKind::kMatMul, {2, 6, 3}, {3, 4}, {}), 2 * 6 * 4 * 3);
}

}  // namespace
}  // namespace octet::ir

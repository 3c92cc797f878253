// Quantization from a program: full, in part, and with cases of one's own.
#include "passes/quantize_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/query.h"
#include "ir/verify.h"
#include "passes/block_builder.h"
#include "passes/partial_quantization.h"
#include "passes/set_scales.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// "conv1: 0 1" for each node that reads quantizers, with the inputs that do.
std::vector<std::string> quantized_inputs(const ir::Graph& graph) {
  std::vector<std::string> out;
  for (const auto& node : graph.nodes()) {
    if (ir::is_quantizer(node.get())) continue;
    std::string text;
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (node->inputs[i] && ir::is_quantizer(node->inputs[i]->producer)) text += str(" ", i);
    if (!text.empty()) out.push_back(node->name + ":" + text);
  }
  return out;
}

// A convolution with batch norm, a gate by Tanh, a residual sum, a last product.
class GatedNet : public BlockBuilder {
 public:
  GatedNet() {
    auto* y = relu(bn(conv(x, "conv1", 4), "bn1"), "relu1");
    auto* gate = op(OpKind::kTanh, "tanh", {conv(y, "gate_conv", 4)});
    auto* gated = op(OpKind::kMul, "gated", {y, gate});
    auto* sum = add(conv(gated, "conv2", 4), y, "sum");
    graph.add_output(conv(sum, "head", 2));
  }
};

TEST(QuantizeModel, FullGoesByTheRules) {
  GatedNet b;
  const ir::Graph graph = quantize_model(b.graph);
  ir::verify(graph);
  EXPECT_THAT(quantized_inputs(graph),
              ElementsAre("conv1: 0 1", "gate_conv: 0 1", "conv2: 0 1", "sum: 1", "head: 0 1"));
  EXPECT_EQ(graph.find_node("bn1"), nullptr) << "folded";
  EXPECT_NE(b.graph.find_node("bn1"), nullptr) << "the network itself stays as it is";
}

TEST(QuantizeModel, ASpecificationOverridesTheRules) {
  GatedNet b;
  const ir::Graph graph =
      quantize_model(b.graph, QuantizationMode::kFull,
                     {.layers = {{.nodes = {.name = "gate_conv"}, .quantize_input = false},
                                 {.nodes = {.name = "head"}, .quantize_input = false, .quantize_weight = false},
                                 {.nodes = {.op = "Mul"}, .inputs = {1}},
                                 {.nodes = {.op = "Add"}, .quantize_input = false}}});
  ir::verify(graph);
  EXPECT_THAT(quantized_inputs(graph), ElementsAre("conv1: 0 1", "gate_conv: 1", "gated: 1", "conv2: 0 1"));
}

TEST(QuantizeModel, PartialQuantizesWhatIsListedAlone) {
  GatedNet b;
  const ir::Graph graph =
      quantize_model(b.graph, QuantizationMode::kPartial, {.layers = {{.nodes = {.regex = "conv\\d"}}}});
  EXPECT_THAT(quantized_inputs(graph), ElementsAre("conv1: 0 1", "conv2: 0 1"));
  EXPECT_THAT([&] { quantize_model(b.graph, QuantizationMode::kPartial); },
              ThrowsMessage<UserError>(HasSubstr("quantization in part needs the layers that are to be quantized")));
}

TEST(QuantizeModel, CasesArePatternsOfOnesOwn) {
  GatedNet b;
  const quant::QdqCase gate =
      quant::case_of_chain("gate", "Tanh > Mul", {{.link = 1, .input = 0}, {.link = 1, .input = 1}});
  EXPECT_THAT(quantized_inputs(quantize_model(b.graph, QuantizationMode::kFull, {}, {gate})),
              ElementsAre("conv1: 0 1", "gate_conv: 0 1", "gated: 0 1", "conv2: 0 1", "sum: 1", "head: 0 1"));
  EXPECT_THAT(quantized_inputs(quantize_model(b.graph, QuantizationMode::kPartial, {}, {gate})),
              ElementsAre("gated: 0 1"));
  // The specification's word on a node counts more than a case.
  EXPECT_THAT(quantized_inputs(quantize_model(b.graph, QuantizationMode::kPartial,
                                              {.layers = {{.nodes = {.name = "gated"}, .inputs = {0}}}}, {gate})),
              ElementsAre("gated: 0"));
  // What is excluded stays float.
  EXPECT_THAT(quantized_inputs(quantize_model(b.graph, QuantizationMode::kPartial,
                                              {.placement = {.exclude = {{.name = "gated"}}}}, {gate})),
              IsEmpty());
}

TEST(QuantizeModel, ACaseCanKeepAnInputFromItsQuantizer) {
  GatedNet b;
  const quant::QdqCase float_residual{.name = "float residual", .find = [](const ir::Graph& graph) {
                                        std::vector<quant::QdqInput> out;
                                        for (const auto& node : graph.nodes())
                                          if (node->kind == OpKind::kAdd) out.push_back({node.get(), 1, false});
                                        return out;
                                      }};
  EXPECT_THAT(quantized_inputs(quantize_model(b.graph, QuantizationMode::kFull, {}, {float_residual})),
              ElementsAre("conv1: 0 1", "gate_conv: 0 1", "conv2: 0 1", "head: 0 1"));
}

TEST(QuantizeModel, ItsQuantizersTakeScales) {
  GatedNet b;
  ir::Graph graph = quantize_model(b.graph);
  quant::CalibrationSet seen(graph);
  for (const std::string& name : seen.names()) seen.observe(name, std::vector<float>{-1, 2});
  set_scales(graph, seen.ranges());
  for (const auto& node : graph.nodes())
    if (ir::is_quantizer(node.get())) {
      EXPECT_EQ(node->get_string("state"), ir::kFrozen);
    }
}

TEST(QuantizeModel, MistakesAreNamed) {
  GatedNet b;
  const auto quantize = [&](LayerQuantization layer) {
    quantize_model(b.graph, QuantizationMode::kFull, {.layers = {layer}});
  };
  EXPECT_THAT([&] { quantize({.nodes = {.name = "heat"}}); },
              ThrowsMessage<UserError>(HasSubstr("is named 'heat'; did you mean 'head'?")));
  EXPECT_THAT([&] { quantize({.nodes = {.op = "Add"}, .inputs = {2}}); },
              ThrowsMessage<UserError>(HasSubstr("Add 'sum' has no activation 2; it has 2 (the first is 0)")));
  EXPECT_THAT([] { quant::case_of_chain("short", "Mul", {}); },
              ThrowsMessage<UserError>(HasSubstr("quantization case 'short': chain 'Mul' has one operator")));
  EXPECT_THAT([] { quant::case_of_chain("far", "Tanh > Mul", {{.link = 2}}); },
              ThrowsMessage<UserError>(HasSubstr("link 2 of the chain Tanh > Mul, which has 2 (the first is 0)")));
}

}  // namespace
}  // namespace octet::passes

// What the user says of nodes wins over the rules of placement.
#include "quant/node_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "passes/block_builder.h"
#include "passes/planned_text.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using quant::NodeSelector;
using quant::parse_selector;
using quant::select_nodes;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(NodeSelection, FirstAndLastLayersAndTheInputCanStayFloat) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.relu(b.conv(b.x, "first", 4), "relu1"), "middle", 4), "relu2");
  b.graph.add_output(b.conv(y, "last1", 4));
  b.graph.add_output(b.op(OpKind::kSigmoid, "sigmoid", {b.conv(y, "last2", 4)}));
  EXPECT_EQ(activations(b.graph, {.quantize_first_layer = false, .quantize_last_layer = false}),
            "relu1  s8 per tensor  -> Conv 'middle'\n");
  EXPECT_EQ(activations(b.graph, {.quantize_input = false}),
            "relu1  s8 per tensor  -> Conv 'middle'\n"
            "relu2  s8 per tensor  -> Conv 'last1', Conv 'last2'\n");
  EXPECT_THAT(planned(b.graph, {.quantize_input = false}), ::testing::Not(HasSubstr("first.weight")));
}

TEST(NodeSelection, TheUserWinsAndMistakesAreNamed) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.x, "backbone/conv", 4), "backbone/relu");
  y = b.conv(b.relu(b.conv(y, "head/cov", 4), "head/relu"), "head/bbox", 4);
  b.graph.add_output(y);
  EXPECT_EQ(activations(b.graph, {.exclude = {{.name = "head/*"}}}), "input  s8 per tensor  -> Conv 'backbone/conv'\n");
  EXPECT_EQ(activations(b.graph, {.exclude = {{.op = "Conv"}}}), "");
  EXPECT_THAT(
      [&] { planned(b.graph, {.exclude = {{.op = "Softmax"}}}); },
      ThrowsMessage<UserError>(HasSubstr("no node of graph 'block' is a Softmax; its operators are Conv, Relu")));
  EXPECT_THAT(
      [&] { planned(b.graph, {.exclude = {{.name = "head/bbx"}}}); },
      ThrowsMessage<UserError>(HasSubstr("no node of graph 'block' is named 'head/bbx'; did you mean 'head/bbox'?")));
  EXPECT_THAT([&] { planned(b.graph, {.exclude = {{.op = "Sigmod"}}}); },
              ThrowsMessage<UserError>(HasSubstr("unknown operator 'Sigmod'; did you mean 'Sigmoid'?")));
  EXPECT_THAT([&] { planned(b.graph, {.exclude = {{}}}); },
              ThrowsMessage<UserError>(HasSubstr("exactly one of name, regex, op and chain")));
}

// Names as regular expressions, and chains of operators with a branch.
TEST(NodeSelection, NodesAreChosenInManyWays) {
  BlockBuilder b;
  auto* y = b.conv(b.x, "stem", 4);
  auto* gate = b.op(OpKind::kSigmoid, "gate", {y});
  y = b.conv(b.op(OpKind::kMul, "silu", {y, gate}), "layer1.0.conv", 4);
  b.graph.add_output(b.conv(b.relu(y, "relu"), "layer10.conv", 4));
  const auto nodes = [&](const NodeSelector& selector) {
    std::set<std::string> out;
    for (const ir::Node* node : select_nodes(b.graph, {selector}, "test")) out.insert(node->name);
    return std::vector<std::string>(out.begin(), out.end());
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(nodes({.regex = "layer1\\..*"}), ElementsAre("layer1.0.conv"));
  EXPECT_THAT(nodes({.name = "layer1*"}), ElementsAre("layer1.0.conv", "layer10.conv"));
  EXPECT_THAT(nodes({.chain = "Conv > Sigmoid > Mul"}), ElementsAre("gate", "silu", "stem"));
  EXPECT_THAT(nodes({.chain = "Conv>Mul"}), ElementsAre("silu", "stem"));
  EXPECT_THAT(nodes({.chain = "* > Conv"}), ElementsAre("layer1.0.conv", "layer10.conv", "relu", "silu"));
  const std::pair<NodeSelector, const char*> mistakes[] = {
      {{.regex = "layer1"}, "the regular expression 'layer1' matches from its first to its last letter"},
      {{.regex = "(layer"}, "'(layer' is no regular expression"},
      {{.chain = "Conv"}, "chain 'Conv' has one operator"},
      {{.chain = "Conv > "}, "no operator beside a '>'"},
      {{.chain = "Conv > Rleu"}, "unknown operator 'Rleu'; did you mean 'Relu'?"},
      {{.chain = "Relu > Mul"}, "no node of graph 'block' begins the chain Relu > Mul"},
      {{.name = "stem", .op = "Conv"}, "exactly one of"}};
  for (const auto& mistake : mistakes)
    EXPECT_THAT([&] { nodes(mistake.first); }, ThrowsMessage<UserError>(HasSubstr(mistake.second)));
  EXPECT_EQ(parse_selector("re:a.*"), NodeSelector{.regex = "a.*"});
  EXPECT_EQ(parse_selector("op:Conv"), NodeSelector{.op = "Conv"});
  EXPECT_EQ(parse_selector("chain:Conv > Relu"), NodeSelector{.chain = "Conv > Relu"});
  EXPECT_EQ(parse_selector("head/*"), NodeSelector{.name = "head/*"});
}

TEST(NodeSelection, OnlySomeNodesAndSomeMore) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.x, "conv1", 4), "relu1");
  y = b.conv(y, "conv2", 4);
  b.graph.add_output(b.op(OpKind::kSigmoid, "sigmoid", {y}));
  EXPECT_EQ(activations(b.graph, {.only = {{.name = "conv2"}}}), "relu1  s8 per tensor  -> Conv 'conv2'\n");
  EXPECT_EQ(activations(b.graph, {.only = {{.name = "conv2"}}, .quantize_last_layer = false}),
            "relu1  s8 per tensor  -> Conv 'conv2'\n")
      << "the user's word wins";
  EXPECT_EQ(activations(b.graph, {.inputs = {{.op = "Sigmoid"}}}),
            "input  s8 per tensor  -> Conv 'conv1'\nrelu1  s8 per tensor  -> Conv 'conv2'\n"
            "conv2  s8 per tensor  -> Sigmoid 'sigmoid'\n");
  EXPECT_EQ(activations(b.graph, {.only = {{.name = "conv1"}}, .inputs = {{.op = "Sigmoid"}}}),
            "input  s8 per tensor  -> Conv 'conv1'\nconv2  s8 per tensor  -> Sigmoid 'sigmoid'\n");
  EXPECT_THAT([&] { planned(b.graph, {.exclude = {{.op = "Sigmoid"}}, .inputs = {{.name = "sigmoid"}}}); },
              ThrowsMessage<UserError>(HasSubstr("node 'sigmoid' is excluded, and its inputs are to be quantized")));
  EXPECT_THAT([&] { planned(b.graph, {.exclude = {{.op = "Conv"}}, .only = {{.name = "conv1"}}}); },
              ThrowsMessage<UserError>(HasSubstr("all nodes that only selects are excluded")));
  EXPECT_THAT([&] { planned(b.graph, {.only = {{.name = "conv3"}}}); },
              ThrowsMessage<UserError>(HasSubstr("quantization only: no node of graph 'block' is named 'conv3'")));
}

}  // namespace
}  // namespace octet::passes

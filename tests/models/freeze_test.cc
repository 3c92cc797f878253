#include "models/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace octet::models {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::set<std::string> trainable(const ir::Graph& graph) {
  std::set<std::string> out;
  for (const ir::Value* v : graph.constants())
    if (v->trainable) out.insert(v->name);
  return out;
}

TEST(FreezeTest, LeavesTheNamedBlocksAlone) {
  const ModelOptions options = {.arch = "resnet18", .input = {3, 32, 32}, .freeze_blocks = {0, 2}};
  ir::Graph graph = build_model(options);
  const std::set<std::string> before = trainable(graph);
  freeze(graph, options);
  const std::set<std::string> after = trainable(graph);
  for (const std::string& name : before) {
    const bool frozen = name.starts_with("conv1.") || name.starts_with("bn1.") || name.starts_with("layer2.");
    EXPECT_EQ(after.contains(name), !frozen) << name;
  }
  EXPECT_LT(after.size(), before.size());
}

TEST(FreezeTest, LeavesBatchNormsAlone) {
  const ModelOptions options = {.arch = "resnet10", .input = {3, 32, 32}, .layout = Layout::kTao, .freeze_bn = true};
  ir::Graph graph = build_model(options);
  freeze(graph, options);
  for (const std::string& name : trainable(graph)) EXPECT_THAT(name, ::testing::Not(HasSubstr("bn"))) << name;
  EXPECT_TRUE(graph.find_value("block_1a_conv_1.weight")->trainable);
}

// Stage qat trains a graph whose weights lie behind quantizers.
TEST(FreezeTest, FindsWeightsBehindQuantizers) {
  const ModelOptions options = {.arch = "vgg16", .input = {3, 32, 32}, .freeze_blocks = {1}};
  ir::Graph graph = build_model(options);
  ir::Node* conv = graph.find_node("features.0");
  ir::Value* scale = graph.add_constant("scale", ir::Tensor::scalar<float>(0.1f));
  ir::Value* zero = graph.add_constant("zero", ir::Tensor::scalar<int8_t>(0));
  ir::Value* quantized = graph.add(ir::OpKind::kFakeQuantize, "quantizer", {conv->inputs[1], scale, zero}, {}, conv);
  graph.set_input(conv, 1, quantized);
  freeze(graph, options);
  EXPECT_FALSE(graph.find_value("features.0.weight")->trainable);
  EXPECT_FALSE(graph.find_value("features.0.bias")->trainable);
  EXPECT_TRUE(graph.find_value("features.5.weight")->trainable);
}

TEST(FreezeTest, RefusesBlocksThatAreNotThere) {
  ir::Graph graph = build_model({.arch = "resnet10", .input = {3, 32, 32}});
  EXPECT_THAT(
      [&] {
        freeze(graph, {.arch = "resnet10", .input = {3, 32, 32}, .freeze_blocks = {5}});
      },
      ThrowsMessage<UserError>(HasSubstr("resnet10 has no block 5; its blocks are 0 to 4")));
  EXPECT_THAT(
      [&] {
        freeze(graph, {.arch = "vgg16", .input = {3, 32, 32}, .freeze_blocks = {1}});
      },
      ThrowsMessage<UserError>(HasSubstr("none of the layers that block 1 of vgg16 has")));
}

}  // namespace
}  // namespace octet::models

#include "passes/equalize_channels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/print.h"
#include "models/zoo.h"
#include "passes/block_builder.h"
#include "passes/evaluate.h"
#include "passes/pipelines.h"
#include "support/prunable_net.h"
#include "support/sanitized.h"
#include "support/spoil_channels.h"
#include "support/trained_look.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ir::Value;

std::vector<float> values_of(const ir::Graph& graph, const std::string& name) {
  return graph.find_value(name)->constant->to_floats();
}

int equalize_exactly(ir::Graph& graph) {
  return equalize_channels(graph).pairs;
}

Value* depthwise(BlockBuilder& b, Value* x, const std::string& name, int64_t kernel = 3) {
  const int64_t n = BlockBuilder::channels(x), pad = kernel / 2;
  return b.op(OpKind::kConv, name,
              {x, b.parameter(name + ".weight", {n, 1, kernel, kernel}), b.parameter(name + ".bias", {n})},
              {{"group", n}, {"pads", std::vector<int64_t>(4, pad)}});
}

Value* classifier(BlockBuilder& b, Value* x) {
  x = b.op(OpKind::kGlobalAveragePool, "mean", {x});
  return b.gemm(b.op(OpKind::kFlatten, "flat", {x}, {{"axis", int64_t{1}}}), "fc", 5);
}

void spoil(ir::Graph& graph, const std::vector<std::string>& makers, const std::vector<std::string>& readers,
           size_t channels, int most = 10) {
  std::mt19937 random(3);
  const std::vector<int> exponents = testing::random_exponents(random, channels, most);
  for (const std::string& name : makers) testing::spoil_maker(graph, *graph.find_node(name), exponents);
  for (const std::string& name : readers) testing::spoil_reader(graph, *graph.find_node(name), exponents);
}

TEST(EqualizeChannels, EvensOutChainsAndKeepsEveryBit) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.x, "a", 16, 3, true), "ra");
  y = b.op(OpKind::kLeakyRelu, "rd", {depthwise(b, y, "dw")}, {{"alpha", 0.1f}});
  y = b.op(OpKind::kMaxPool, "pool", {y}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  y = b.conv(y, "c", 8, 1, true);
  y = b.op(OpKind::kPRelu, "rc", {y, b.parameter("slopes", {8, 1, 1})});
  b.graph.add_output(classifier(b, y));
  spoil(b.graph, {"a"}, {"dw"}, 16), spoil(b.graph, {"dw"}, {"c"}, 16), spoil(b.graph, {"c"}, {"fc"}, 8);
  Equalized result;
  const auto pass = [&](ir::Graph& g) { return (result = equalize_channels(g)).pairs; };
  EXPECT_EQ(run_and_compare(b.graph, pass), 3);
  EXPECT_GT(result.ratio_before, 1e4);
  EXPECT_LT(result.ratio_after, 20);
  EXPECT_EQ(result.text().find("equalized 3 pairs, largest channel range ratio "), 0u) << result.text();
  // Between the sides of a site ranges differ by the same factor in all channels, but for rounding to powers of two.
  const std::vector<float> fc = values_of(b.graph, "fc.weight"), c = values_of(b.graph, "c.weight"),
                           bias = values_of(b.graph, "c.bias");
  double low = 1e9, high = -1e9;
  for (size_t channel = 0; channel < 8; ++channel) {
    float out = std::abs(bias[channel] * 0.5f), in = 0;
    for (size_t i = 0; i < 16; ++i) out = std::max(out, std::abs(c[channel * 16 + i]));
    for (size_t row = 0; row < 5; ++row) in = std::max(in, std::abs(fc[row * 8 + channel]));
    low = std::min(low, std::log2(double{out} / in)), high = std::max(high, std::log2(double{out} / in));
  }
  EXPECT_LE(high - low, 2.0001);
  EXPECT_EQ(equalize_exactly(b.graph), 0) << "a second time there is nothing to do";
}

// A residual sum has the factors of all its operands, and every layer that makes or reads one of them takes part.
TEST(EqualizeChannels, ScalesResidualsWithAllTheirBranches) {
  BlockBuilder b;
  auto* stem = b.relu(b.conv(b.x, "stem", 8, 3, true), "r0");
  auto* inner = b.relu(b.conv(stem, "in", 12, 1, true), "r1");
  auto* sum = b.relu(b.add(b.conv(inner, "out", 8, 3, true), stem, "sum"), "r2");
  auto* again = b.add(b.conv(sum, "direct", 8, 3, true), sum, "sum2");  // it makes and reads the same channels
  b.graph.add_output(classifier(b, again));
  const std::vector<std::string> makers = {"stem", "out", "direct"}, readers = {"in", "direct", "fc"};
  const Outputs whole = outputs_of(b.graph);
  spoil(b.graph, makers, readers, 8);
  ASSERT_EQ(difference(outputs_of(b.graph), whole), 0) << "spoiled by something else than its inverse";
  Equalized result;
  const auto pass = [&](ir::Graph& g) { return (result = equalize_channels(g)).pairs; };
  EXPECT_EQ(run_and_compare(b.graph, pass), 1) << "what lies inside the block is even";
  EXPECT_GT(result.ratio_before, 1e4);
  EXPECT_LT(result.ratio_after, 20);
}

TEST(EqualizeChannels, LeavesWhatOthersReadAndWhatKeepsNoFactor) {
  const std::pair<const char*, std::function<Value*(BlockBuilder&, Value*)>> cases[] = {
      {"Sigmoid", [](auto& b, auto* y) { return b.op(OpKind::kSigmoid, "f", {y}); }},
      {"Silu", [](auto& b, auto* y) { return b.silu(y, "f"); }},
      {"an output",
       [](auto& b, auto* y) {
         b.graph.add_output(y);
         return b.relu(y, "f");
       }},
      {"another reader",
       [](auto& b, auto* y) {
         b.graph.add_output(b.op(OpKind::kTanh, "t", {y}));
         return b.relu(y, "f");
       }},
      {"a sum with the input", [](auto& b, auto* y) { return b.add(y, b.x, "f"); }},
      {"a sum with a number",
       [](auto& b, auto* y) { return b.add(y, b.graph.add_constant("one", ir::Tensor::scalar(1.0f)), "f"); }},
      {"a sum that is broadcast",
       [](auto& b, auto* y) { return b.add(y, b.op(OpKind::kGlobalAveragePool, "m", {y}), "f"); }},
      {"columns that are pixels",
       [](auto& b, auto* y) {
         return b.op(OpKind::kFlatten, "f", {y}, {{"axis", int64_t{1}}});
       }},
      {"weights of two nodes",
       [](auto& b, auto* y) {
         y = b.op(OpKind::kConv, "f", {y, b.graph.find_value("first.weight")});
         return b.op(OpKind::kSigmoid, "s", {y});
       }},
  };
  for (const auto& [what, between] : cases) {
    SCOPED_TRACE(what);
    BlockBuilder b;
    auto* y = between(b, b.conv(b.x, "first", 4));
    if (y->type.shape->size() == 2) {
      y = b.gemm(y, "last", 3);
      spoil(b.graph, {"first"}, {}, 4);
    } else {
      y = b.conv(y, "last", 4);
      spoil(b.graph, {"first"}, {"last"}, 4);
    }
    b.graph.add_output(y);
    EXPECT_EQ(run_and_compare(b.graph, equalize_exactly), 0);
  }
}

TEST(EqualizeChannels, AnEndOfClipsIsKeptRelaxedOrJudgedByWhatWasSeen) {
  BlockBuilder b;
  auto* zero = b.graph.add_constant("zero", ir::Tensor::scalar(0.0f));
  auto* y = b.x;
  for (const char* name : {"a", "b"}) {
    auto* six = b.graph.add_constant(str(name, ".six"), ir::Tensor::scalar(6.0f));
    y = b.op(OpKind::kClip, str("relu6_", name), {b.conv(y, name, 8), zero, six});
  }
  b.graph.add_output(b.conv(y, "c", 8));
  spoil(b.graph, {"a"}, {"b"}, 8, 3), spoil(b.graph, {"b"}, {"c"}, 8, 3);
  const Equalized kept = equalize_channels(b.graph);
  EXPECT_EQ(kept.pairs, 0);
  EXPECT_EQ(kept.clips, (std::vector<std::string>{"relu6_a", "relu6_b"}));
  EXPECT_NE(kept.text().find("2 Clips (relu6_a ...) keep the channels"), std::string::npos) << kept.text();
  EXPECT_EQ(clipped_tensors(b.graph), (std::vector<std::string>{"a", "b"}));

  ir::Graph seen = b.graph.clone();
  ir::infer_shapes(seen);
  const Equalized judged = equalize_channels(seen, {.peaks = {{"a", 6.0f}, {"b", 6.5f}}});
  EXPECT_EQ(judged.pairs, 1);
  EXPECT_EQ(judged.clips, (std::vector<std::string>{"relu6_b"}));
  EXPECT_EQ(seen.find_node("relu6_a")->kind, OpKind::kRelu);
  EXPECT_EQ(seen.find_node("relu6_b")->kind, OpKind::kClip);

  EXPECT_EQ(equalize_channels(b.graph, {.relax_clips = true}).pairs, 2);
  EXPECT_EQ(b.graph.find_node("relu6_b")->kind, OpKind::kRelu);
}

// Weights of nothing before an ordinary bias: evened out by their range alone, the channel would be 10^4 times as large
// as the others, whose codes its tensor's scale would take.
TEST(EqualizeChannels, ConstantChannelsStaySmall) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.x, "a", 4, 1, true), "r");
  b.graph.add_output(b.conv(y, "c", 4));
  std::vector<float> w = values_of(b.graph, "a.weight"), bias = values_of(b.graph, "a.bias");
  for (size_t i = 0; i < 4; ++i) w[i] = 1e-9f * w[i];
  bias[0] = 1.0f;
  b.graph.set_constant(b.graph.find_value("a.weight"), ir::Tensor::of<float>({4, 4, 1, 1}, w));
  b.graph.set_constant(b.graph.find_value("a.bias"), ir::Tensor::of<float>({4}, bias));
  run_and_compare(b.graph, equalize_exactly);
  EXPECT_LE(values_of(b.graph, "a.bias")[0], 2);
}

TEST(EqualizeChannels, TransposedConvolutionsWithGroupsAndResizes) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.x, "a", 8, 1, true), "ra");
  y = b.op(OpKind::kConvTranspose, "up", {y, b.parameter("up.weight", {8, 3, 2, 2}), b.parameter("up.bias", {6})},
           {{"group", int64_t{2}}, {"strides", std::vector<int64_t>{2, 2}}});
  auto* scales = b.graph.add_constant("scales", ir::Tensor::of<float>({4}, {1, 1, 2, 2}));
  y = b.op(OpKind::kResize, "resize", {b.relu(y, "ru"), nullptr, scales}, {{"mode", std::string("linear")}});
  b.graph.add_output(b.conv(y, "c", 4));
  std::mt19937 random(3);
  for (const char* name : {"a", "c"}) {
    const std::vector<int> exponents = testing::random_exponents(random, name[0] == 'a' ? 8 : 6, 10);
    if (name[0] == 'a')
      testing::spoil_maker(b.graph, *b.graph.find_node("a"), exponents);
    else
      testing::spoil_reader(b.graph, *b.graph.find_node("c"), exponents);
  }
  EXPECT_EQ(run_and_compare(b.graph, equalize_exactly), 2);
}

TEST(EqualizeChannels, EveryNetworkOfTheZooStaysWhatItIs) {
  std::vector<const char*> networks{"resnet20", "squeezenet"};
  if (!testing::kSanitized) networks.insert(networks.end(), {"mobilenet_v1", "mobilenet_v2"});
  for (const char* arch : networks)
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(str(arch, " ", relu));
      models::ModelOptions options{.arch = arch, .num_classes = 10, .input = {3, 32, 32}};
      if (relu) options.activation = models::Activation::kRelu;
      ir::Graph graph = models::build_model(options);
      graph.inputs()[0]->type.shape = ir::Shape{1, 3, 32, 32};
      testing::look_trained(graph);
      run_pipeline(graph, preparation_passes(false));
      testing::spoil_pairs(graph, 6);
      run_and_compare(graph, equalize_exactly);
    }
}

// Everything that networks are made of, joined in every way.
TEST(EqualizeChannels, RandomNetworksStayWhatTheyAre) {
  int pairs = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    testing::PrunableNet net(seed);
    std::mt19937 random(seed);
    for (Value* constant : net.graph().constants()) {
      const ir::Shape& shape = constant->constant->shape();
      if (constant->type.data_type != ir::DataType::kFloat32 || shape.size() < 2 || shape[0] == 0) continue;
      const auto rows = static_cast<size_t>(shape[0]);
      testing::multiply_channels(net.graph(), constant, 0, testing::random_exponents(random, rows, 4), 1);
    }
    run_pipeline(net.graph(), preparation_passes(false));
    pairs += run_and_compare(net.graph(), equalize_exactly);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << ir::to_text(net.graph());
  }
  EXPECT_GT(pairs, 100);
}

}  // namespace
}  // namespace octet::passes

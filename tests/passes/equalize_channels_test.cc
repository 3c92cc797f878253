#include "passes/equalize_channels.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/zoo.h"
#include "passes/block_builder.h"
#include "passes/evaluate.h"
#include "passes/pipelines.h"

namespace octet::passes {
namespace {

using ir::OpKind;

std::vector<float> weights_of(const ir::Graph& graph, const std::string& name) {
  return graph.find_value(name)->constant->to_floats();
}

// Largest over smallest of the ranges of output channels.
double spread(const ir::Graph& graph, const std::string& name) {
  const ir::Tensor& w = *graph.find_value(name)->constant;
  const std::vector<float> values = w.to_floats();
  const size_t channels = static_cast<size_t>(w.shape()[0]), each = values.size() / channels;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (size_t c = 0; c < channels; ++c) {
    double range = 0;
    for (size_t i = 0; i < each; ++i) range = std::max(range, std::abs(double{values[c * each + i]}));
    low = std::min(low, range), high = std::max(high, range);
  }
  return high / low;
}

// Divides output channels of a convolution and multiplies the input channels of the next by 10^-3 .. 10^3.
void spoil(ir::Graph& graph, const std::string& first, const std::string& second, int period = 7,
           bool depthwise = false) {
  for (const auto& [name, sign] : {std::pair(first, -1), std::pair(second, 1)}) {
    ir::Value* value = graph.find_value(name);
    std::vector<float> w = value->constant->to_floats();
    const ir::Shape& shape = value->constant->shape();
    const size_t row = w.size() / static_cast<size_t>(shape[0]), taps = row / static_cast<size_t>(shape[1]);
    for (size_t i = 0; i < w.size(); ++i) {
      const size_t channel = sign < 0 || depthwise ? i / row : i / taps % static_cast<size_t>(shape[1]);
      w[i] *= static_cast<float>(
          std::pow(10.0, sign * (static_cast<double>(static_cast<int>(channel) % period - period / 2))));
    }
    graph.set_constant(value, ir::Tensor::of<float>(shape, w));
  }
}

TEST(EqualizeChannels, EvensOutRangesAndKeepsEveryBit) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.x, "a", 16, 3, true), "ra");
  y = b.op(OpKind::kConv, "dw", {y, b.parameter("dw.weight", {16, 1, 3, 3}), b.parameter("dw.bias", {16})},
           {{"group", int64_t{16}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  y = b.op(OpKind::kLeakyRelu, "rd", {y}, {{"alpha", 0.1f}});
  y = b.op(OpKind::kMaxPool, "pool", {y}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  y = b.relu(b.conv(y, "c", 8, 1, true), "rc");
  y = b.op(OpKind::kFlatten, "flat", {b.op(OpKind::kGlobalAveragePool, "mean", {y})}, {{"axis", int64_t{1}}});
  b.graph.add_output(b.gemm(y, "fc", 5));
  spoil(b.graph, "a.weight", "dw.weight", 7, /*depthwise=*/true);
  spoil(b.graph, "dw.weight", "c.weight", 5);
  ASSERT_GT(spread(b.graph, "dw.weight"), 1e3);
  EXPECT_EQ(run_and_compare(b.graph, [](ir::Graph& g) { return equalize_channels(g); }), 3);
  EXPECT_LT(spread(b.graph, "a.weight"), 10);
  EXPECT_LT(spread(b.graph, "dw.weight"), 10);
  // The ranges of both sides of a channel differ by less than the rounding to powers of two, twice.
  const std::vector<float> fc = weights_of(b.graph, "fc.weight"), c = weights_of(b.graph, "c.weight");
  for (size_t channel = 0; channel < 8; ++channel) {
    float out = 0, in = 0;
    for (size_t i = 0; i < 16; ++i) out = std::max(out, std::abs(c[channel * 16 + i]));
    for (size_t row = 0; row < 5; ++row) in = std::max(in, std::abs(fc[row * 8 + channel]));
    EXPECT_LE(std::abs(std::log2(out / in)), 1.0001) << channel;
  }
  EXPECT_EQ(equalize_channels(b.graph), 0) << "a second time there is nothing to do";
}

TEST(EqualizeChannels, LeavesWhatOthersReadAndWhatKeepsNoFactor) {
  BlockBuilder b;
  auto* shared = b.conv(b.x, "shared", 8);
  auto* y = b.add(b.conv(b.relu(shared, "r"), "next", 8), shared, "sum");
  y = b.conv(b.op(OpKind::kSigmoid, "sigmoid", {b.conv(y, "before", 8)}), "behind", 8);
  auto* six = b.graph.add_constant("six", ir::Tensor::scalar(6.0f));
  auto* zero = b.graph.add_constant("zero", ir::Tensor::scalar(0.0f));
  y = b.conv(b.op(OpKind::kClip, "relu6", {y, zero, six}), "last", 8);
  b.graph.add_output(y);
  for (const char* name : {"shared", "before", "behind"})
    spoil(b.graph, str(name, ".weight"), name == std::string("shared") ? "next.weight" : "last.weight");
  EXPECT_EQ(run_and_compare(b.graph, [](ir::Graph& g) { return equalize_channels(g); }), 0);
  EXPECT_EQ(equalize_channels(b.graph, {.relax_clips = true}), 1);
  EXPECT_EQ(b.graph.find_node("relu6")->kind, OpKind::kRelu);
}

TEST(EqualizeChannels, EveryNetworkOfTheZooStaysWhatItIs) {
  for (const char* arch : {"resnet20", "mobilenet_v2", "squeezenet"}) {
    SCOPED_TRACE(arch);
    ir::Graph graph = models::build_model({.arch = arch, .num_classes = 10, .input = {3, 32, 32}});
    graph.inputs()[0]->type.shape = ir::Shape{1, 3, 32, 32};
    run_pipeline(graph, preparation_passes(false));
    run_and_compare(graph, [](ir::Graph& g) { return equalize_channels(g); });
  }
}

}  // namespace
}  // namespace octet::passes

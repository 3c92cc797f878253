// Ranges of channels are read where they are.
#include <algorithm>

#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;

int64_t count(const engine::Plan& plan, const std::string& kind) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [&](const engine::Step& s) { return s.kind == kind; });
}

TEST(Split, EveryReaderReadsARangeOfChannels) {
  const std::vector<int64_t> windows(4, 1), three{3, 3};
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{64, 64}, {58, 70}, {7, 100, 21}, {128, 64, 16}}) {
    SCOPED_TRACE(::testing::PrintToString(sizes));
    QuantNet net(41);
    int64_t channels = 0;
    for (int64_t size : sizes) channels += size;
    auto* x =
        net.fq(net.conv(net.fq(net.input({2, 3, 9, 8}), 1.0f / 127), 3, channels, 3, {.pad = 1}), 0.02f, true, 90);
    const auto pieces = net.split(x, sizes);
    std::vector<ir::Value*> outputs;
    for (size_t i = 0; i < pieces.size(); ++i) {
      ir::Value* p = pieces[i];
      const int64_t c = sizes[i];
      outputs.push_back(net.fq(net.conv(p, c, 20, 1), 0.03f));
      outputs.push_back(net.fq(net.conv(p, c, c, 3, {.pad = 1, .groups = c}), 0.03f));
      if (c % 7 == 0) outputs.push_back(net.fq(net.conv(p, c, 21, 1, {.groups = 7}), 0.03f));
      outputs.push_back(net.op(OpKind::kMaxPool, {p}, {{"kernel_shape", three}, {"pads", windows}}));
      outputs.push_back(net.fq(net.op(OpKind::kAveragePool, {p}, {{"kernel_shape", three}, {"pads", windows}}), 0.02f));
      outputs.push_back(net.fq(net.op(OpKind::kGlobalAveragePool, {p}), 0.01f));
      outputs.push_back(net.op(OpKind::kGlobalAveragePool, {p}));
      outputs.push_back(net.fq(net.op(OpKind::kTanh, {p}), 0.03f));
      outputs.push_back(net.fq(net.op(OpKind::kAdd, {p, net.fq(net.conv(x, channels, c, 1), 0.02f)}), 0.041f));
      outputs.push_back(net.fq(net.op(OpKind::kMul, {p, p}), 0.15f));
      outputs.push_back(net.op(OpKind::kRelu, {p}));
      outputs.push_back(p);
    }
    net.finish(outputs);
    std::shared_ptr<const engine::Plan> plan;
    check_graph(net, {.float_tolerance = 5e-3}, &plan);
    for (const engine::Step& s : plan->steps) EXPECT_TRUE(s.op != "Split") << s.kind;
  }
}

TEST(Split, WindowsOverFullTaps) {
  for (const int64_t stride : {1, 2}) {
    QuantNet net(42);
    auto* x = net.fq(net.conv(net.fq(net.input({1, 8, 10, 11}), 1.0f / 127), 8, 192, 1), 0.02f, true, 30);
    const auto pieces = net.split(x, {128, 64});
    auto* a = net.fq(net.conv(pieces[0], 128, 32, 3, {.stride = stride, .pad = 1}), 0.03f);
    auto* b = net.fq(net.conv(pieces[1], 64, 32, 3, {.stride = stride, .pad = 1}), 0.03f);
    net.finish({a, b});
    std::shared_ptr<const engine::Plan> plan;
    check_graph(net, {}, &plan);
    EXPECT_EQ(step_kinds(*plan), "quantize conv conv conv dequantize dequantize");
  }
}

TEST(Split, CopiesWhereTapsWouldBeHalfEmptyOrPixelsSmall) {
  QuantNet net(43);
  auto* x = net.fq(net.conv(net.fq(net.input({1, 8, 10, 11}), 1.0f / 127), 8, 52, 1), 0.02f);
  const auto pieces = net.split(x, {32, 16, 4});
  net.finish({net.fq(net.conv(pieces[0], 32, 32, 3, {.pad = 1}), 0.03f), net.fq(net.conv(pieces[1], 16, 8, 1), 0.03f),
              net.fq(net.conv(pieces[2], 4, 8, 1), 0.03f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(count(*plan, "copy"), 2);
}

TEST(Split, PiecesOfAConcatAreMovedOnce) {
  // A cross-stage block: both halves and what is computed from the second meet again.
  QuantNet net(47);
  auto* x = net.fq(net.relu(net.conv(net.fq(net.input({1, 8, 10, 11}), 1.0f / 127), 8, 128, 1)), 0.02f);
  const auto halves = net.split(x, {64, 64});
  auto* y = net.fq(net.relu(net.conv(halves[1], 64, 64, 3, {.pad = 1})), 0.02f);
  y = net.fq(net.op(OpKind::kAdd, {y, halves[1]}), 0.02f);
  auto* joined = net.fq(net.op(OpKind::kConcat, {halves[0], halves[1], y}, {{"axis", int64_t{1}}}), 0.02f);
  net.finish({net.fq(net.conv(joined, 192, 16, 1), 0.03f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv copy conv copy conv dequantize");
}

TEST(Split, ARangeOfARangeAndOfAConcat) {
  QuantNet net(45);
  auto* x = net.fq(net.input({1, 8, 6, 7}), 1.0f / 127);
  auto* a = net.relu(net.conv(x, 8, 48, 1));
  auto* b = net.relu(net.conv(x, 8, 40, 3, {.pad = 1}));
  auto* joined = net.fq(net.op(OpKind::kConcat, {a, b}, {{"axis", int64_t{1}}}), 0.02f);
  const auto outer = net.split(joined, {21, 67});
  const auto inner = net.split(outer[1], {30, 37});
  net.finish({net.fq(net.conv(inner[1], 37, 16, 1), 0.03f),
              net.fq(net.conv(inner[0], 30, 30, 5, {.pad = 2, .groups = 30}), 0.03f),
              net.fq(net.conv(outer[0], 21, 4, 1), 0.03f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(count(*plan, "copy"), 0);
}

}  // namespace
}  // namespace octet::testing

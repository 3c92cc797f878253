// ConvTranspose on codes: a convolution for each phase of its strides.
#include <algorithm>

#include "lower/lower_test_util.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using Ints = std::vector<int64_t>;

struct Transposed {
  int64_t in = 16, out = 32, groups = 1;
  Ints kernel{2, 2}, strides{2, 2}, dilations{1, 1}, pads{0, 0, 0, 0}, output_padding{0, 0};
  int64_t scale_axis = 1;
  bool bias = true;
};

ir::Value* transposed(QuantNet& net, ir::Value* x, const Transposed& t) {
  // About as many products meet in a pixel as the kernel has taps for each phase.
  const float taps = static_cast<float>(t.in / t.groups * t.kernel[0] * t.kernel[1]);
  ir::Value* w = net.weights({t.in, t.out / t.groups, t.kernel[0], t.kernel[1]}, t.scale_axis, 3 / std::sqrt(taps));
  std::vector<ir::Value*> inputs{x, w};
  if (t.bias) inputs.push_back(net.constant({t.out}, -0.5f, 0.5f));
  return net.op(OpKind::kConvTranspose, inputs,
                {{"kernel_shape", t.kernel},
                 {"strides", t.strides},
                 {"dilations", t.dilations},
                 {"pads", t.pads},
                 {"output_padding", t.output_padding},
                 {"group", t.groups}});
}

// quantize, the layer, quantize: on every instruction set, against the reference. Returns the kinds of the steps.
std::string check(const Transposed& t, ir::Shape image = {1, 0, 5, 7}) {
  QuantNet net(31);
  image[1] = t.in;
  auto* x = net.fq(net.input(image), 0.008f, true, 117);
  net.finish({net.fq(net.relu(transposed(net, x, t)), 0.01f, true, 3)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  for (const engine::Step& s : plan->steps) EXPECT_TRUE(s.int8) << s.kind << ": " << s.reason;
  EXPECT_EQ(plan->steps[1].op, "ConvTranspose+Relu");
  return step_kinds(*plan);
}

TEST(TransposedConv, UpsamplesByTheUsualKernels) {
  const std::string four = "quantize conv conv conv conv dequantize";
  EXPECT_EQ(check({}), four);
  EXPECT_EQ(check({.in = 40, .out = 24, .kernel = {4, 4}, .pads = {1, 1, 1, 1}}), four);
  EXPECT_EQ(check({.in = 33, .out = 17, .kernel = {3, 3}, .pads = {1, 1, 1, 1}, .output_padding = {1, 1}}), four);
  EXPECT_EQ(check({.in = 64, .out = 64, .kernel = {6, 6}, .pads = {2, 2, 2, 2}}, {2, 0, 9, 10}), four);
  EXPECT_EQ(check({.in = 3, .out = 48, .kernel = {5, 5}, .pads = {2, 2, 2, 2}}), four);
}

TEST(TransposedConv, StrideOneIsOneConvolution) {
  EXPECT_EQ(check({.kernel = {3, 5}, .strides = {1, 1}, .dilations = {2, 1}, .pads = {1, 0, 3, 2}}),
            "quantize conv dequantize");
}

TEST(TransposedConv, EmptyListsAreAbsent) {
  EXPECT_EQ(check({.kernel = {3, 3}, .strides = {}, .dilations = {}, .pads = {}, .output_padding = {}}),
            "quantize conv dequantize");
}

TEST(TransposedConv, OddSizesOfEverything) {
  check({.in = 19, .out = 21, .kernel = {3, 4}, .strides = {3, 2}, .pads = {0, 1, 2, 0}, .output_padding = {2, 1}});
  check({.kernel = {3, 3}, .strides = {2, 3}, .dilations = {2, 3}, .pads = {2, 1, 1, 2}});
  check({.kernel = {4, 2}, .strides = {4, 2}, .dilations = {3, 5}});
  check({.kernel = {2, 3}, .strides = {6, 4}, .dilations = {4, 6}, .pads = {1, 2, 0, 1}});
  // Pads that cut whole windows off: phases that begin inside the image.
  check({.kernel = {2, 2}, .pads = {3, 2, 2, 3}});
  check({.kernel = {1, 1}, .strides = {3, 3}, .pads = {2, 2, 0, 0}});
  check({.in = 5, .out = 130, .bias = false}, {1, 0, 1, 1});
}

TEST(TransposedConv, PixelsThatNoTapReachesAreTheBias) {
  check({.kernel = {1, 1}});
  check({.kernel = {2, 1}, .strides = {3, 4}, .output_padding = {2, 3}});
  check({.kernel = {2, 2}, .strides = {2, 2}, .dilations = {2, 2}});
}

TEST(TransposedConv, GroupsWithScalesOfEitherAxis) {
  check({.in = 24, .out = 36, .groups = 4, .kernel = {3, 3}});
  check({.in = 36, .out = 36, .groups = 36, .kernel = {4, 4}, .pads = {1, 1, 1, 1}});
  check({.in = 36, .out = 36, .groups = 36, .kernel = {4, 4}, .pads = {1, 1, 1, 1}, .scale_axis = 0});
  check({.in = 12, .out = 24, .groups = 12, .kernel = {3, 3}, .scale_axis = 0});
}

TEST(TransposedConv, FewChannels) {
  for (const int64_t channels : {1, 3, 4}) {
    check({.out = channels});
    check({.out = channels, .kernel = {3, 3}, .strides = {2, 3}, .pads = {1, 1, 1, 1}});
    check({.in = channels, .out = channels, .groups = channels, .kernel = {4, 4}, .pads = {1, 1, 1, 1}});
  }
  // Pixels of four bytes sixteen bytes apart would look like larger ones.
  EXPECT_EQ(check({.out = 2, .kernel = {1, 5}, .strides = {1, 4}, .pads = {0, 1, 0, 0}}),
            "quantize conv copy conv copy conv copy conv copy dequantize");
}

TEST(TransposedConv, FloatsBehindIt) {
  QuantNet net(32);
  auto* x = net.fq(net.input({2, 20, 5, 6}), 1.0f / 127);
  auto* y = net.op(OpKind::kClip, {transposed(net, x, {.in = 20, .out = 3, .kernel = {3, 3}, .pads = {1, 1, 0, 0}}),
                                   net.scalar(-0.25f), net.scalar(0.5f)});
  net.finish({y});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.float_tolerance = 1e-3}, &plan);
  EXPECT_EQ(step_kinds(*plan),
            "quantize conv strided_copy conv strided_copy conv strided_copy conv strided_copy strided_copy");
}

TEST(TransposedConv, AResidualAndAConcatBehindIt) {
  for (const int64_t channels : {32, 3})
    for (const bool twice : {false, true}) {
      QuantNet net(33);
      auto* x = net.fq(net.input({1, channels, 10, 12}), 1.0f / 127);
      auto* low = net.fq(net.conv(x, channels, 24, 3, {.stride = 2, .pad = 1}), 0.015f);
      auto* up = transposed(net, low, {.in = 24, .out = channels, .kernel = {4, 4}, .pads = {1, 1, 1, 1}});
      if (twice) up = net.fq(up, 0.013f, true, 100);
      auto* sum = net.fq(net.relu(net.op(OpKind::kAdd, {up, x})), 0.016f);
      auto* other = net.relu(transposed(net, low, {.in = 24, .out = 48}));
      auto* joined = net.fq(net.op(OpKind::kConcat, {other, sum}, {{"axis", int64_t{1}}}), 0.016f);
      net.finish({net.fq(net.conv(joined, 48 + channels, 8, 3, {.pad = 1}), 0.02f)});
      std::shared_ptr<const engine::Plan> plan;
      check_graph(net, {}, &plan);
      int convolutions = 0;
      for (const engine::Step& s : plan->steps) {
        convolutions += s.kind == "conv";
        EXPECT_TRUE(s.int8 && s.kind != "add") << s.kind << ": " << s.reason;
      }
      EXPECT_EQ(convolutions, 1 + 4 + 4 + 1);
    }
}

TEST(TransposedConv, NobodyReadsItsPhasesWithinTheirBands) {
  // The tensor before the phases is read again behind a reader of the whole.
  QuantNet net(35);
  auto* x = net.fq(net.conv(net.fq(net.input({1, 8, 12, 9}), 1.0f / 127), 8, 16, 3, {.pad = 1}), 0.02f);
  auto* up = net.fq(transposed(net, x, {}), 0.02f);
  auto* down = net.fq(net.conv(up, 32, 16, 3, {.stride = 2, .pad = 1}), 0.02f);
  auto* late = net.fq(net.conv(x, 16, 16, 3, {.pad = 1}), 0.02f);
  net.finish({net.fq(net.op(OpKind::kAdd, {late, down}), 0.03f)});
  const auto plan = compile(net.graph);
  const auto inputs = net.random_inputs(-1, 1);
  const auto scalar = run_plan(plan, inputs, Isa::kScalar, 1);
  for (const int64_t memory : {int64_t{1} << 11, int64_t{1} << 13, int64_t{1} << 30})
    for (int threads = 1; threads <= 3; ++threads) {
      const engine::RowBandOptions options{.large_bytes = 0, .memory_bytes = memory};
      EXPECT_EQ(run_plan(plan, inputs, Isa::kScalar, threads, options).outputs.begin()->second.data,
                scalar.outputs.begin()->second.data);
    }
}

TEST(TransposedConv, StaysFloatWithAReason) {
  const auto reason = [](const Transposed& t, int64_t rows = 3) {
    QuantNet net(34);
    auto* x = net.fq(net.input({1, t.in, rows, 3}), 1.0f / 127);
    net.finish({net.fq(net.relu(transposed(net, x, t)), 0.02f)});
    std::shared_ptr<const engine::Plan> plan;
    if (rows == 3)
      check_graph(net, {.bit_equal = false}, &plan);
    else
      plan = compile(net.graph, 1);
    for (const engine::Step& s : plan->steps)
      if (s.kind == "float_conv_transpose") return s.reason;
    return std::string("none");
  };
  EXPECT_EQ(reason({.kernel = {9, 9}, .strides = {9, 9}}), "no INT8 kernel for so large a stride");
  // Nor does anything take as long as the padding is large.
  const int64_t far = 1 << 16;
  EXPECT_EQ(reason({.in = 1, .out = 1, .strides = {1, 1}, .pads = {far - 8, 0, 0, 0}}, far),
            "no INT8 kernel for so large a window");
  EXPECT_EQ(reason({.scale_axis = 0}), "weights have scales along another axis than that of the output channels");
}

}  // namespace
}  // namespace octet::testing

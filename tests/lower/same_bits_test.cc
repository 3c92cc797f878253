// 2,000 random small networks: every tensor has the bits of the scalar kernels on every instruction set, with 1, 2 and
// 3 threads, whichever tactics compute the convolutions.
#include <random>

#include "engine/steps_conv.h"
#include "engine/tactics.h"
#include "lower/lower_test_util.h"
#include "support/sanitized.h"

namespace octet::testing {
namespace {

using ir::OpKind;

constexpr uint64_t kGraphs = testing::kSanitized ? 60 : 1000;

// A chain of two to five layers with every property that a convolution has, and what may stand between two of them.
class ConvNet {
 public:
  explicit ConvNet(uint64_t seed) : net(seed) {
    const int64_t channels = pick({1, 3, 4, 8, 16, 17, 32, 48});
    x_ = quantize(net.input({pick({1, 1, 2}), channels, integer(4, 14), integer(4, 18)}));
    for (int64_t i = integer(2, 5); i > 0; --i) grow();
    net.finish({x_});
  }
  QuantNet net;

 private:
  int64_t integer(int64_t low, int64_t high) { return net.random.integer(low, high); }
  int64_t pick(std::vector<int64_t> from) { return from[integer(0, static_cast<int64_t>(from.size()) - 1)]; }
  bool chance(int percent) { return integer(1, 100) <= percent; }
  const ir::Shape& shape(ir::Value* v) {
    ir::infer_shapes(net.graph);
    return *v->type.shape;
  }
  ir::Value* quantize(ir::Value* v) {
    const float scale = net.random.uniform(0.01f, 0.03f);
    if (chance(50)) return net.fq(v, scale, true, static_cast<int>(pick({0, 1, 128, 255, integer(0, 255)})));
    return net.fq(v, scale, false, chance(30) ? static_cast<int>(integer(-128, 127)) : 0);
  }

  void grow() {
    const ir::Shape s = shape(x_);
    switch (integer(0, 9)) {
      case 0:
        x_ = quantize(
            net.op(OpKind::kMaxPool, {x_},
                   {{"kernel_shape", std::vector<int64_t>{2, 3}}, {"pads", std::vector<int64_t>{0, 1, 1, 1}}}));
        return;
      case 1:
        x_ = quantize(net.op(pick({0, 1}) ? OpKind::kSigmoid : OpKind::kHardSwish, {x_}));
        return;
      case 2:
        if (s[2] * s[3] <= 400) return transposed(s);
        [[fallthrough]];
      case 3:
        if (s[1] > 1) return part(s);
        [[fallthrough]];
      default:
        convolution(s);
    }
  }

  // A range of the channels, or two that meet again.
  void part(const ir::Shape& s) {
    const int64_t half = s[1] / 2, first = chance(50) ? half : integer(1, s[1] - 1);
    const auto pieces = net.split(x_, {first, s[1] - first});
    if (first * 2 != s[1])
      x_ = pieces[integer(0, 1)];
    else if (chance(50))
      x_ = quantize(net.op(chance(50) ? OpKind::kAdd : OpKind::kMul, {pieces[0], pieces[1]}));
    else
      x_ = quantize(net.op(OpKind::kConcat, {pieces[1], net.relu(pieces[0])}, {{"axis", int64_t{1}}}));
    if (chance(70)) convolution(shape(x_));
  }

  void transposed(const ir::Shape& s) {
    const int64_t kernel_h = integer(1, 5), kernel_w = chance(70) ? kernel_h : integer(1, 5);
    const int64_t stride_h = integer(1, 3), stride_w = chance(70) ? stride_h : integer(1, 4);
    const std::vector<int64_t> dilations{chance(15) ? 2 : 1, chance(15) ? 3 : 1};
    int64_t groups = 1;
    if (chance(25))
      for (int64_t g : {s[1], int64_t{4}, int64_t{3}, int64_t{2}})
        if (s[1] % g == 0 && groups == 1) groups = g;
    const int64_t out = groups == s[1] && chance(50) ? s[1] : groups * integer(1, std::max<int64_t>(1, 48 / groups));
    // As many as leave a pixel of the output.
    const auto pads = [&](int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
      const int64_t whole = (size - 1) * stride + (kernel - 1) * dilation + 1;
      return std::pair{integer(0, std::min(kernel, (whole - 1) / 2)), integer(0, std::min(kernel, (whole - 1) / 2))};
    };
    const auto [top, bottom] = pads(s[2], kernel_h, stride_h, dilations[0]);
    const auto [left, right] = pads(s[3], kernel_w, stride_w, dilations[1]);
    ir::Value* w = net.weights({s[1], out / groups, kernel_h, kernel_w}, 1,
                               3.0f / std::sqrt(static_cast<float>(s[1] / groups * kernel_h * kernel_w)));
    std::vector<ir::Value*> inputs{x_, w};
    if (chance(80)) inputs.push_back(net.constant({out}, -0.5f, 0.5f));
    ir::Value* y = net.op(OpKind::kConvTranspose, inputs,
                          {{"kernel_shape", std::vector<int64_t>{kernel_h, kernel_w}},
                           {"strides", std::vector<int64_t>{stride_h, stride_w}},
                           {"dilations", dilations},
                           {"pads", std::vector<int64_t>{top, left, bottom, right}},
                           {"output_padding", std::vector<int64_t>{integer(0, stride_h - 1), integer(0, stride_w - 1)}},
                           {"group", groups}});
    x_ = quantize(chance(50) ? net.relu(y) : y);
  }

  void convolution(const ir::Shape& s) {
    const bool depthwise = chance(20);
    const int64_t kernel_h = std::min(s[2], pick({1, 1, 3, 3, 3, 2, 5, 7}));
    const int64_t kernel_w = std::min(s[3], chance(75) ? kernel_h : pick({1, 2, 3, 4, 5}));
    const auto dilation = [&](int64_t kernel, int64_t size) {
      return chance(15) && (kernel - 1) * 2 + 1 <= size ? int64_t{2} : int64_t{1};
    };
    const int64_t dilation_h = dilation(kernel_h, s[2]), dilation_w = dilation(kernel_w, s[3]);
    int64_t groups = 1;
    if (depthwise)
      groups = s[1];
    else if (chance(15))
      for (int64_t g : {4, 3, 2})
        if (s[1] % g == 0) groups = g;
    const int64_t out = depthwise ? s[1] : groups * (chance(30) ? pick({16, 32, 64}) : integer(1, 40));
    const auto pad = [&](int64_t kernel) { return chance(60) ? kernel / 2 : integer(0, kernel - 1); };
    const std::vector<int64_t> pads{pad(kernel_h), pad(kernel_w), pad(kernel_h), pad(kernel_w)};
    const bool same = kernel_h % 2 && kernel_w % 2 && dilation_h == 1 && dilation_w == 1 && out == s[1] && chance(50);
    const int64_t stride = same ? 1 : pick({1, 1, 1, 2, 3});
    ir::Value* w = net.weights({out, s[1] / groups, kernel_h, kernel_w}, 0,
                               2.0f / std::sqrt(static_cast<float>(s[1] / groups * kernel_h * kernel_w)));
    std::vector<ir::Value*> inputs{x_, w};
    if (chance(80)) inputs.push_back(net.constant({out}, -0.5f, 0.5f));
    ir::Value* y =
        net.op(OpKind::kConv, inputs,
               {{"kernel_shape", std::vector<int64_t>{kernel_h, kernel_w}},
                {"strides", std::vector<int64_t>{stride, chance(80) || same ? stride : pick({1, 2})}},
                {"dilations", std::vector<int64_t>{dilation_h, dilation_w}},
                {"pads", same ? std::vector<int64_t>{kernel_h / 2, kernel_w / 2, kernel_h / 2, kernel_w / 2} : pads},
                {"group", groups}});
    if (same) {
      if (chance(40)) y = quantize(y);
      y = net.op(OpKind::kAdd, {y, x_});
    }
    if (chance(50))
      y = chance(50) ? net.relu(y) : net.relu6(y);
    else if (chance(60))
      y = activation(y);
    x_ = quantize(y);
  }

  // Behind nothing quantized, so that the step of the convolution ends in a function.
  ir::Value* activation(ir::Value* x) {
    switch (integer(0, 3)) {
      case 0:
        return net.op(OpKind::kMul, {x, net.op(OpKind::kSigmoid, {x})});
      case 1:
        return net.op(OpKind::kLeakyRelu, {x}, {{"alpha", 0.01f}});
      case 2:
        return net.op(OpKind::kHardSwish, {x});
      default:
        return net.op(OpKind::kTanh, {x});
    }
  }

  ir::Value* x_ = nullptr;
};

// Gives every convolution one of its candidates.
std::shared_ptr<const engine::Plan> with_random_tactics(const engine::Plan& plan, Isa isa, std::mt19937_64& random) {
  auto out = std::make_shared<engine::Plan>(plan);
  for (engine::Step& step : out->steps) {
    if (step.kind != engine::kConvKind) continue;
    const auto candidates = engine::conv_candidates(plan, step, kernels::kernels(isa), 3);
    step.tactic = candidates[random() % candidates.size()].name;
  }
  return out;
}

TEST(SameBits, RandomNetworksOnEveryInstructionSetAndThreadCount) {
  std::mt19937_64 random(7);
  // Step by step, in few bands, in as many as there are rows, what lies about depthwise convolutions kept from other
  // threads.
  const std::vector<std::optional<engine::RowBandOptions>> bands{
      engine::RowBandOptions{.large_bytes = 1 << 30, .memory_bytes = 0},
      engine::RowBandOptions{.large_bytes = 0, .memory_bytes = 1 << 30},
      engine::RowBandOptions{.large_bytes = 0, .memory_bytes = 6000},
      engine::RowBandOptions{.large_bytes = 1 << 30, .private_memory_bytes = 1 << 30}};
  std::vector<uint64_t> banded(bands.size(), 0);
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    ConvNet random_net(seed);
    QuantNet& net = random_net.net;
    const auto plan = compile(net.graph, (*net.graph.inputs()[0]->type.shape)[0]);
    const auto inputs = net.random_inputs(-2, 2);
    const auto scalar = run_plan(plan, inputs, Isa::kScalar, 1);
    ASSERT_FALSE(scalar.dumps.empty());
    for (Isa isa : supported_isas())
      for (int threads : {1, 2, 3}) {
        const auto tactics = with_random_tactics(*plan, isa, random);
        const size_t which = random() % bands.size();
        const auto run = run_plan(tactics, inputs, isa, threads, bands[which]);
        banded[which] += !run.banded_steps.empty();
        ASSERT_EQ(scalar.dumps.size(), run.dumps.size());
        for (size_t i = 0; i < run.dumps.size(); ++i)
          ASSERT_TRUE(scalar.dumps[i].codes == run.dumps[i].codes && scalar.dumps[i].values == run.dumps[i].values)
              << "seed " << seed << ", " << run.dumps[i].name << " on " << isa_name(isa) << ", " << threads
              << " threads, tactic " << tactics->steps[std::min(i, tactics->steps.size() - 1)].tactic;
        ASSERT_FALSE(HasFailure()) << "seed " << seed << " on " << isa_name(isa) << ", " << threads
                                   << " threads, bands " << which;
      }
  }
  EXPECT_EQ(banded[0], 0u);
  EXPECT_GT(banded[1], kGraphs);
  EXPECT_GT(banded[2], kGraphs / 4);
  EXPECT_GT(banded[3], kGraphs / 10);
}

}  // namespace
}  // namespace octet::testing

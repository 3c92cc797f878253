// Activations behind a convolution: with the quantizer behind them they are part of its step, though nothing is
// quantized before them, and the codes are those of the graph's numbers.
#include <cmath>

#include "engine/engine_file.h"
#include "engine/kernels/code_function.h"
#include "lower/lower_test_util.h"
#include "lower/step_function.h"
#include "numerics/quantize.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using ir::Value;

struct Activation {
  const char* name;
  std::function<Value*(QuantNet&, Value*)> of;
};

Value* clamped_shift(QuantNet& net, Value* x) {
  return net.op(OpKind::kClip, {net.op(OpKind::kAdd, {x, net.scalar(3)}), net.scalar(0), net.scalar(6)});
}

const Activation kActivations[] = {
    {"Silu",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kMul, {x, net.op(OpKind::kSigmoid, {x})});
     }},
    {"HardSwish", [](QuantNet& net, Value* x) { return net.op(OpKind::kHardSwish, {x}); }},
    {"x * clip(x + 3, 0, 6) / 6",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kDiv, {net.op(OpKind::kMul, {x, clamped_shift(net, x)}), net.scalar(6)});
     }},
    {"x * (clip(x + 3, 0, 6) / 6)",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kMul, {net.op(OpKind::kDiv, {clamped_shift(net, x), net.scalar(6)}), x});
     }},
    {"Mish",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kMul, {x, net.op(OpKind::kTanh, {net.op(OpKind::kSoftplus, {x})})});
     }},
    {"Gelu",
     [](QuantNet& net, Value* x) {
       Value* erf = net.op(OpKind::kErf, {net.op(OpKind::kDiv, {x, net.scalar(1.41421356f)})});
       Value* product = net.op(OpKind::kMul, {x, net.op(OpKind::kAdd, {erf, net.scalar(1)})});
       return net.op(OpKind::kMul, {product, net.scalar(0.5f)});
     }},
    {"Sigmoid", [](QuantNet& net, Value* x) { return net.op(OpKind::kSigmoid, {x}); }},
    {"Tanh", [](QuantNet& net, Value* x) { return net.op(OpKind::kTanh, {x}); }},
    {"Elu",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kElu, {x}, {{"alpha", 1.0f}});
     }},
    {"HardSigmoid",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kHardSigmoid, {x}, {{"alpha", 0.2f}, {"beta", 0.5f}});
     }},
    {"LeakyRelu 0.1",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kLeakyRelu, {x}, {{"alpha", 0.1f}});
     }},
    {"LeakyRelu 0.01",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kLeakyRelu, {x}, {{"alpha", 0.01f}});
     }},
    {"PRelu",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kPRelu, {x, net.scalar(0.25f)});
     }},
};

// The kind of the only step between quantizing the input and dequantizing the result.
std::string only_step(const engine::Plan& plan) {
  EXPECT_EQ(plan.steps.size(), 3u) << step_kinds(plan);
  EXPECT_TRUE(plan.steps[1].constants.contains("function"));
  return plan.steps[1].kind;
}

TEST(Activations, ArePartOfTheConvolution) {
  for (const Activation& activation : kActivations)
    for (const bool depthwise : {false, true})
      for (const float scale : {0.02f, 0.007f}) {
        SCOPED_TRACE(activation.name + str(depthwise ? ", depthwise, " : ", ", scale));
        QuantNet net(31);
        auto* x = net.fq(net.input({1, 16, 7, 6}), 1.0f / 127);
        auto* a = net.conv(x, 16, 16, 3, {.pad = 1, .groups = depthwise ? 16 : 1});
        net.finish({net.fq(activation.of(net, a), scale)});
        std::shared_ptr<const engine::Plan> plan;
        // Sums are rounded to steps that are at least 32 times as fine as codes, and mostly a hundred times.
        check_graph(net, {.off_by_one = 0.01, .low = -2, .high = 2}, &plan);
        EXPECT_EQ(only_step(*plan), depthwise ? "depthwise" : "conv");
      }
}

// Large tensors take lines (kernels/code_function.h), with the same bits on every instruction set.
TEST(Activations, OfLargeTensorsAreOnLines) {
  int on_lines = 0;
  for (const Activation& activation : kActivations)
    for (const int groups : {1, 64})
      for (const bool residual : {false, true}) {
        SCOPED_TRACE(activation.name + str(", groups ", groups, residual ? ", residual" : ""));
        QuantNet net(38);
        auto* x = net.fq(net.input({1, 64, 13, 11}), 1.0f / 127);
        auto* a = net.conv(x, 64, 64, 3, {.pad = 1, .groups = groups});
        if (residual) a = net.op(OpKind::kAdd, {a, x});
        net.finish({net.fq(activation.of(net, a), 0.02f)});
        std::shared_ptr<const engine::Plan> plan;
        check_graph(net, {.off_by_one = 0.04, .low = -2, .high = 2}, &plan);
        if (residual && groups > 1) continue;  // there is no such step
        ASSERT_EQ(plan->steps.size(), 3u) << step_kinds(*plan);
        const bool lines = plan->steps[1].ints.contains("function_line_shift");
        // An engine from before there were lines says so, instead of what is missing.
        EXPECT_EQ(engine::engine_file_bytes(*plan)[8],
                  static_cast<char>(lines ? engine::kEngineFormatVersion : engine::kPlainFormatVersion));
        on_lines += lines;
      }
  EXPECT_GT(on_lines, 12);
}

TEST(Activations, OfUnsignedCodesAndSmallNumbers) {
  for (const float size : {1e-3f, 0.03f, 1.0f, 40.0f}) {
    SCOPED_TRACE(size);
    QuantNet net(32);
    auto* x = net.fq(net.input({1, 20, 6, 5}), size / 127);
    auto* w = net.weights({24, 20, 1, 1}, 0, 0.4f);
    auto* a = net.op(OpKind::kConv, {x, w}, {{"kernel_shape", std::vector<int64_t>{1, 1}}});
    auto* y = net.op(OpKind::kMul, {net.op(OpKind::kSigmoid, {a}), a});
    net.finish({net.fq(y, size / 150, true, size < 1 ? 128 : 20)});
    std::shared_ptr<const engine::Plan> plan;
    check_graph(net, {.off_by_one = 0.01, .low = -size, .high = size}, &plan);
    EXPECT_EQ(only_step(*plan), "conv");
  }
}

TEST(Activations, BehindAGemmAndAResidual) {
  QuantNet net(33);
  auto* x = net.fq(net.input({1, 16, 5, 5}), 1.0f / 127);
  auto* a = net.op(OpKind::kAdd, {net.conv(x, 16, 16, 3, {.pad = 1}), x});
  auto* y = net.fq(net.op(OpKind::kMul, {a, net.op(OpKind::kSigmoid, {a})}), 0.02f);
  auto* b = net.op(OpKind::kAdd, {net.fq(net.conv(y, 16, 16, 1), 0.03f), y});
  auto* z = net.fq(net.op(OpKind::kTanh, {b}), 0.04f);
  auto* p = net.fq(net.op(OpKind::kFlatten, {net.op(OpKind::kGlobalAveragePool, {z})}), 0.01f);
  net.finish({net.fq(net.op(OpKind::kSigmoid, {net.gemm(p, 16, 10)}), 1.0f / 255, true)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.off_by_one = 0.02}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv conv global_average conv dequantize");
  EXPECT_EQ(plan->steps[1].op, "Conv+Add+Sigmoid+Mul");
  EXPECT_EQ(plan->steps[2].ints.at("rounds_twice"), 1);
}

// As `octet quantize` places the quantizers of EfficientNet.
TEST(Activations, InSqueezeAndExcite) {
  QuantNet net(34);
  const auto silu = [&](Value* x) { return net.op(OpKind::kMul, {x, net.op(OpKind::kSigmoid, {x})}); };
  auto* in = net.fq(net.input({1, 16, 8, 8}), 1.0f / 127);
  auto* x = net.fq(silu(net.conv(in, 16, 16, 3, {.pad = 1, .groups = 16})), 0.02f);
  auto* squeezed = net.fq(net.op(OpKind::kGlobalAveragePool, {x}), 0.01f);
  auto* r = net.fq(silu(net.conv(squeezed, 16, 8, 1)), 0.01f);
  auto* gate = net.fq(net.op(OpKind::kSigmoid, {net.conv(r, 8, 16, 1)}), 1.0f / 127);
  net.finish({net.fq(net.conv(net.fq(net.op(OpKind::kMul, {x, gate}), 0.02f), 16, 16, 1), 0.02f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.off_by_one = 0.02}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize depthwise squeeze_excite conv dequantize");
}

TEST(Activations, OfATransposedConvolution) {
  QuantNet net(35);
  auto* x = net.fq(net.input({1, 16, 5, 5}), 1.0f / 127);
  auto* a = net.op(OpKind::kConvTranspose, {x, net.weights({16, 16, 3, 3}, 1, 0.2f)},
                   {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"strides", std::vector<int64_t>{2, 2}}});
  net.finish({net.fq(net.op(OpKind::kHardSwish, {a}), 0.02f)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.off_by_one = 0.01}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv conv conv conv dequantize");
}

// What others read stays a tensor, and what differs between channels is no function of one number.
TEST(Activations, ThatStayFloat) {
  QuantNet net(36);
  auto* x = net.fq(net.input({1, 16, 5, 5}), 1.0f / 127);
  auto* a = net.conv(x, 16, 16, 1);
  auto* y = net.fq(net.op(OpKind::kTanh, {a}), 1.0f / 127);
  auto* slopes = net.constant({16, 1, 1}, 0.1f, 0.3f);
  auto* z = net.fq(net.op(OpKind::kPRelu, {net.conv(y, 16, 16, 1), slopes}), 0.02f);
  net.finish({z, a});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.bit_equal = false}, &plan);
  EXPECT_THAT(step_kinds(*plan), ::testing::HasSubstr("conv unary quantize conv binary quantize"));
}

// So channels with a ReLU6 between them are not equalized (passes/equalize_channels.h): each would have its own limit.
// A sum is rounded to steps before a function: beside the border of a quantizer within it that would be another code,
// and a jump of the result that no tie explains.
TEST(Activations, WithQuantizersWithinStayFloat) {
  QuantNet net(31);
  auto* x = net.fq(net.input({2, 16, 20, 20}), 1.0f / 127);
  auto* sum = net.conv(x, 16, 32, 1);
  auto* gate = net.fq(net.op(OpKind::kSigmoid, {sum}), 1.0f / 127);
  net.finish({net.fq(net.op(OpKind::kMul, {net.fq(sum, 0.11f), gate}), 0.03f)});
  EXPECT_EQ(step_kinds(*compile(net.graph, 2)), "quantize conv unary quantize quantize mul dequantize");
}

TEST(Activations, LimitsForEachChannelStayFloat) {
  QuantNet net(37);
  auto* x = net.fq(net.input({1, 16, 5, 5}), 1.0f / 127);
  auto* limits = net.constant({16, 1, 1}, 0.5f, 3);
  auto* y = net.fq(net.op(OpKind::kMin, {net.relu(net.conv(x, 16, 16, 1)), limits}), 0.02f);
  net.finish({net.conv(y, 16, 16, 1)});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.bit_equal = false}, &plan);
  EXPECT_THAT(step_kinds(*plan), ::testing::HasSubstr("conv binary quantize conv"));
}

// The code of a step, read as the comment of CodeFunction says.
int code_at(const lower::StepFunction& f, int32_t step) {
  if (f.line_shift > 0) {
    const auto cell = static_cast<size_t>((step + 65536) / 1024 % 64);
    const int place = (step + 65536) / 8 % 256 + f.table[128 + cell], slope = static_cast<int8_t>(f.table[64 + cell]);
    const double rise = std::floor(std::ldexp(slope * (place % 256), -f.line_shift));
    return static_cast<uint8_t>(f.table[cell] + static_cast<int>(rise));
  }
  const int cell = step >= 0 ? step / 256 : (step - 255) / 256, place = step - cell * 256;
  const auto entry = [&](int row) { return f.table[static_cast<size_t>(row * 256 + (cell + 256) % 256)]; };
  const int walked = cell < f.turn ? 255 - place : place;
  int code = entry(0);
  for (int i = 1; i <= f.rises; ++i) code += entry(i) < walked;
  return code;
}

double number_at(const lower::StepFunction& f, int32_t step) {
  const int32_t beyond = std::max(std::abs(step) - kernels::kInnerSteps, 0), sign = step < 0 ? -1 : 1;
  return sign * (std::abs(step) - beyond + std::ldexp(beyond, f.tail_shift)) * static_cast<double>(f.scale);
}

struct Curve {
  const char* name;
  double (*function)(double);
};
constexpr Curve kCurves[] = {
    {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
    {"hard_swish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }},
    {"gelu", [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
    {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"leaky_relu", [](double x) { return x < 0 ? 0.1 * x : x; }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
};

TEST(StepFunctions, AreExactWhereThatIsAsked) {
  const auto code_of = [](float x) {
    return static_cast<uint8_t>(std::clamp(std::nearbyint(x / (1 + std::exp(-x)) / 0.05f) + 128, 0.0f, 255.0f));
  };
  EXPECT_GT(lower::step_function(code_of, 1e4f, lower::Fit::kClose)->line_shift, 0);
  const auto exact = lower::step_function(code_of, 1e4f, lower::Fit::kExact);
  ASSERT_TRUE(exact.has_value());
  EXPECT_EQ(exact->line_shift, 0);
  for (int32_t s = kernels::kLeastStep; s <= kernels::kGreatestStep; ++s)
    ASSERT_EQ(code_at(*exact, s), code_of(static_cast<float>(number_at(*exact, s)))) << s;
}

// Rows hold the function for every step; lines are at most a code away, in few steps; steps reach as far as codes
// change, and what lies beyond has the right code.
TEST(StepFunctions, HoldTheCodesOfEveryStep) {
  int on_lines = 0, on_rows = 0;
  for (const auto& [name, function] : kCurves)
    for (const auto& [scale, reach] :
         {std::pair{1e-4f, 1.0f}, {0.003f, 1e4f}, {0.03f, 1e4f}, {0.05f, 1e4f}, {0.4f, 1e4f}, {0.05f, 2.0f}})
      for (const int zero : {128, 10}) {
        SCOPED_TRACE(std::string(name) + ", scale " + std::to_string(scale) + ", zero point " + std::to_string(zero));
        const auto code = [&, scale = scale, function = function, zero](double x) {
          return std::clamp(std::nearbyint(function(x) / scale) + zero, 0.0, 255.0);
        };
        const auto f =
            lower::step_function([&](float x) { return static_cast<uint8_t>(code(x)); }, reach, lower::Fit::kClose);
        if (!f) continue;
        int different = 0;
        double most = 0;
        for (int32_t s = kernels::kLeastStep; s <= kernels::kGreatestStep; ++s) {
          const double error = std::abs(code_at(*f, s) - code(static_cast<float>(number_at(*f, s))));
          different += error > 0, most = std::max(most, error);
        }
        EXPECT_EQ(code_at(*f, kernels::kLeastStep), code(-reach));
        EXPECT_EQ(code_at(*f, kernels::kGreatestStep), code(reach));
        if (f->line_shift > 0) {
          ++on_lines;
          EXPECT_LE(most, 1);
          EXPECT_LE(different, 65536 / 20);
        } else {
          ++on_rows;
          EXPECT_EQ(different, 0);
        }
      }
  EXPECT_GT(on_lines, 30);
  EXPECT_GT(on_rows, 5);
}

// What is added to the noise of rounding to codes, where the sums lie evenly: less than 0.15 dB, mostly a fraction.
TEST(StepFunctions, LinesAddLittleNoise) {
  for (const auto& [name, function] : kCurves)
    for (const float greatest : {4.0f, 8.0f, 20.0f}) {
      SCOPED_TRACE(std::string(name) + " to " + std::to_string(greatest));
      const double scale = std::string(name) == "sigmoid" ? 1.0 / 127 : greatest / 127;
      const auto real = [&, function = function](double x) { return function(x) / scale + 128; };
      const auto code = [&](double x) { return std::clamp(std::nearbyint(real(x)), 0.0, 255.0); };
      const auto f =
          lower::step_function([&](float x) { return static_cast<uint8_t>(code(x)); }, 1e4f, lower::Fit::kClose);
      ASSERT_TRUE(f.has_value());
      double exact = 0, ours = 0;
      for (int32_t s = kernels::kLeastStep; s <= kernels::kGreatestStep; ++s) {
        const double x = number_at(*f, s), y = std::clamp(real(x), 0.0, 255.0);
        exact += std::pow(code(x) - y, 2), ours += std::pow(code_at(*f, s) - y, 2);
      }
      EXPECT_LE(10 * std::log10(ours / exact), 0.15);
    }
}

TEST(StepFunctions, DeclineWhatTheyCannotHold) {
  const auto wave = [](float x) { return static_cast<uint8_t>(128 + 100 * std::sin(x)); };
  const auto jump = [](float x) { return static_cast<uint8_t>(x < 0.3f ? 0 : 200); };
  for (const lower::Fit fit : {lower::Fit::kExact, lower::Fit::kClose}) {
    EXPECT_FALSE(lower::step_function(wave, 1000, fit).has_value());
    EXPECT_FALSE(lower::step_function(jump, 10, fit).has_value());
    const auto constant = lower::step_function([](float) { return uint8_t{77}; }, 10, fit);
    ASSERT_TRUE(constant.has_value());
    EXPECT_EQ(code_at(*constant, 123), 77);
  }
}

}  // namespace
}  // namespace octet::testing

// Functions of one quantized tensor become tables, also where quantizers lie between their operators; the tables hold
// what the separate steps would compute.
#include "lower/lower_test_util.h"
#include "numerics/quantize.h"

namespace octet::testing {
namespace {

using ir::OpKind;
using ir::Value;
using numerics::QuantParams;

constexpr float kConvScale = 0.031f, kGateScale = 1.0f / 127, kScale = 0.0397f;

struct Gated {
  const char* name;
  std::function<Value*(QuantNet&, Value*)> gate;
  float (*function)(float);
};

const Gated kGates[] = {
    {"SiLU", [](QuantNet& net, Value* x) { return net.op(OpKind::kSigmoid, {x}); },
     [](float x) { return kernels::apply_unary(kernels::UnaryOp::kSigmoid, x, 0, 0); }},
    {"HardSwish",
     [](QuantNet& net, Value* x) {
       return net.op(OpKind::kHardSigmoid, {x}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}});
     },
     [](float x) { return kernels::apply_unary(kernels::UnaryOp::kHardSigmoid, x, 1.0f / 6, 0.5f); }},
    {"TanhGate", [](QuantNet& net, Value* x) { return net.op(OpKind::kTanh, {x}); },
     [](float x) { return kernels::apply_unary(kernels::UnaryOp::kTanh, x, 0, 0); }},
};

const engine::TensorDump& tensor(const testing::Run& run, const Value* v) {
  for (const engine::TensorDump& d : run.dumps)
    if (d.name == v->name && d.is_codes) return d;
  ADD_FAILURE() << "no codes of " << v->name;
  return run.dumps.front();
}

// FQ(x * FQ(gate(x))) behind a convolution. With `keep` others read x too, so that it stays a tensor.
struct GatedNet {
  GatedNet(const Gated& gated, bool depthwise, bool keep) : net(21) {
    auto* in = net.fq(net.input({1, 16, 7, 6}), 1.0f / 127);
    x = net.fq(net.conv(in, 16, 16, 3, {.pad = 1, .groups = depthwise ? 16 : 1}), kConvScale, true, 128);
    y = net.fq(net.op(OpKind::kMul, {x, net.fq(gated.gate(net, x), kGateScale)}), kScale, true, 20);
    net.finish(keep ? std::vector<Value*>{y, x} : std::vector<Value*>{y});
  }
  QuantNet net;
  Value *x, *y;
};

TEST(Tables, GateWithAQuantizerIsPartOfTheConvolution) {
  for (const Gated& gated : kGates)
    for (const bool depthwise : {false, true}) {
      SCOPED_TRACE(gated.name);
      GatedNet fused(gated, depthwise, false), apart(gated, depthwise, true);
      std::shared_ptr<const engine::Plan> fused_plan, plan;
      check_graph(fused.net, {}, &fused_plan);
      check_graph(apart.net, {}, &plan);
      EXPECT_EQ(step_kinds(*fused_plan), depthwise ? "quantize depthwise dequantize" : "quantize conv dequantize");
      EXPECT_EQ(step_kinds(*plan), depthwise ? "quantize depthwise copy dequantize dequantize"
                                             : "quantize conv copy dequantize dequantize");
      const auto inputs = apart.net.random_inputs(-1, 1);
      const auto run = run_plan(plan, inputs, Isa::kScalar, 1);
      const engine::TensorDump &x = tensor(run, apart.x), &y = tensor(run, apart.y);
      // The arithmetic of the steps one by one: a table for the gate, a product of codes.
      const QuantParams px{kConvScale, 128, 0, 255}, pg{kGateScale, 0, -128, 127}, py{kScale, 20, 0, 255};
      const float m = numerics::requantize_multiplier(px.scale, pg.scale, py.scale);
      for (size_t i = 0; i < x.codes.size(); ++i) {
        const int32_t gate = numerics::quantize(gated.function(numerics::dequantize(x.codes[i], px)), pg);
        EXPECT_EQ(y.codes[i], numerics::requantize((x.codes[i] - 128) * gate, m, 20, 0, 255));
      }
      const auto other = run_plan(fused_plan, inputs, Isa::kScalar, 1);
      EXPECT_EQ(tensor(other, fused.y).codes, y.codes);
    }
}

TEST(Tables, ChainOfQuantizedActivationsIsOneTable) {
  QuantNet net(22);
  auto* x = net.fq(net.conv(net.fq(net.input({2, 8, 5, 5}), 1.0f / 127), 8, 20, 1), 0.03f);
  auto* a = net.fq(net.op(OpKind::kTanh, {x}), 1.0f / 127);
  auto* b = net.fq(net.op(OpKind::kAdd, {a, x}), 0.05f);
  auto* c = net.fq(net.relu(net.op(OpKind::kSub, {b, a})), 0.04f, true);
  net.finish({c});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {.off_by_one = 0.02}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv dequantize");
  EXPECT_EQ(plan->steps[1].op, "Conv+Tanh+Add+Sub+Relu");
}

TEST(Tables, TensorThatOthersReadStaysAndTheRestIsOneTable) {
  QuantNet net(23);
  auto* x = net.fq(net.conv(net.fq(net.input({1, 8, 5, 5}), 1.0f / 127), 8, 20, 1), 0.03f);
  auto* a = net.fq(net.op(OpKind::kTanh, {x}), 0.037f);
  auto* b = net.fq(net.op(OpKind::kAbs, {a}), 0.038f);
  auto* c = net.fq(net.op(OpKind::kNeg, {b}), 0.041f);
  net.finish({c, a});
  std::shared_ptr<const engine::Plan> plan;
  check_graph(net, {}, &plan);
  EXPECT_EQ(step_kinds(*plan), "quantize conv copy dequantize dequantize");
  EXPECT_EQ(plan->steps[2].op, "Abs+Neg");
}

}  // namespace
}  // namespace octet::testing

// The networks of the zoo, quantized by the placement rules: which layers are INT8, and that every tensor is right.
#include <set>

#include "lower/quantized_zoo.h"
#include "support/sanitized.h"

namespace octet::testing {
namespace {

// Kinds of steps that are not INT8.
std::multiset<std::string> float_ops(const engine::Plan& plan) {
  std::multiset<std::string> out;
  for (const engine::Step& s : plan.steps)
    if (!s.int8) out.insert(s.op);
  return out;
}

// Every tensor within one step of the fake-quantized graph, for the given share of it exactly; all instruction sets
// alike.
void check(const Quantized& q, double off_by_one, std::shared_ptr<const engine::Plan> plan, bool bit_equal = true) {
  const auto scalar = run_plan(plan, q.inputs, Isa::kScalar, 1);
  const Comparison c = compare(scalar.dumps, q.expected);
  EXPECT_GT(c.codes, 1000);
  // A tie upstream may move a code by one step, and a sum over many such codes by more.
  EXPECT_LE(c.worse, off_by_one * c.codes * 0.05);
  EXPECT_LE(c.off_by_one, off_by_one * c.codes);
  if (!bit_equal) return;
  for (Isa isa : supported_isas())
    for (int threads : {1, 2}) {
      const auto run = run_plan(plan, q.inputs, isa, threads);
      EXPECT_EQ(scalar.outputs.at("logits").data, run.outputs.at("logits").data) << isa_name(isa) << ", " << threads;
    }
}

TEST(Zoo, ResNet20) {
  for (const bool is_unsigned : {false, true}) {
    const Quantized q = quantized("resnet20", 16, is_unsigned);
    const auto plan = compile(q.graph);
    EXPECT_THAT(float_ops(*plan), ::testing::IsEmpty());
    check(q, 0.03, plan);
  }
}

TEST(Zoo, ResNet18) {
  const Quantized q = quantized("resnet18", 32);
  const auto plan = compile(q.graph);
  EXPECT_THAT(float_ops(*plan), ::testing::IsEmpty());
  EXPECT_EQ(plan->steps.size(), 1 + 20 + 1 + 1 + 1u);  // quantize, convolutions, max pool, mean, classifier
  check(q, 0.03, plan);
}

TEST(Zoo, MobileNetV2) {
  const Quantized q = quantized("mobilenet_v2", 32);
  const auto plan = compile(q.graph);
  EXPECT_THAT(float_ops(*plan), ::testing::IsEmpty());
  check(q, 0.05, plan);
}

TEST(Zoo, EfficientNet) {
  const Quantized q = quantized("efficientnet_b0", 32);
  const auto plan = compile(q.graph);
  // Swish behind an unquantized convolution is computed in FP32, as the graph says.
  for (const std::string& op : float_ops(*plan)) EXPECT_THAT(op, ::testing::AnyOf("Sigmoid", "Sigmoid+Mul"));
  for (const engine::Step& s : plan->steps) {
    if (!s.int8) {
      EXPECT_NE(s.reason, "") << s.name;
    }
  }
  // A code of an activation in a hundred lies on the other side of a border (kernels/code_function.h), in each of 49.
  check(q, 0.25, plan, false);
}

TEST(Zoo, MobileNetV3) {
  const Quantized q = quantized("mobilenet_v3_small", 32);
  const auto plan = compile(q.graph);
  EXPECT_THAT(float_ops(*plan), ::testing::IsEmpty());
  check(q, 0.05, plan);
}

TEST(Zoo, PreActivationResNet) {
  const Quantized q = quantized("resnet50_v2", 32);
  const auto plan = compile(q.graph);
  // The border around the first convolution's output, of which no quantizer knows.
  EXPECT_THAT(float_ops(*plan), ::testing::Each("Pad"));
  check(q, 0.05, plan);
}

TEST(Zoo, EveryNetworkCompilesFloatAndQuantized) {
  for (const models::ModelInfo& info : models::all_models()) {
    if (info.parameters > (testing::kSanitized ? 6'000'000 : 30'000'000))
      continue;  // larger ones repeat the blocks of their families
    models::ModelOptions options = models::default_options(info.name);
    const int64_t side = info.name == "inception_v3" ? 75 : 32;
    options.input = {3, side, side}, options.num_classes = 10;
    ir::Graph graph = models::build_model(options);
    const auto float_plan = compile(graph, 2);
    EXPECT_EQ(float_plan->buffers[float_plan->outputs[0]].shape, (std::vector<int64_t>{2, 10})) << info.name;
    for (const engine::Step& s : float_plan->steps) EXPECT_FALSE(s.int8) << info.name << " " << s.name;
    passes::fold_batch_norm(graph);
    passes::place_fake_quant(graph);
    std::map<std::string, quant::Range> ranges;
    for (const ir::Value* v : graph.values()) ranges[v->name].amax = 3;
    passes::set_scales(graph, ranges);
    const auto plan = compile(graph, 2);
    int float_convolutions = 0;
    for (const engine::Step& s : plan->steps) float_convolutions += s.kind.rfind("float_", 0) == 0;
    // The two products of activations in every block of a transformer are float.
    EXPECT_EQ(float_convolutions, info.name.starts_with("vit") || info.name == "swin_t" ? 2 * 12 : 0) << info.name;
  }
}

}  // namespace
}  // namespace octet::testing

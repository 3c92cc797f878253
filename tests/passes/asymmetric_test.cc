// Activations with a zero point that calibration finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/query.h"
#include "numerics/range_params.h"
#include "passes/block_builder.h"
#include "passes/place_fake_quant.h"
#include "passes/set_scales.h"
#include "quant/fusion_model.h"
#include "support/post_training.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const ir::Node& quantizer_of(const ir::Graph& graph, const std::string& tensor) {
  return *graph.find_node(tensor + "/fake_quantize");
}
int64_t zero_point(const ir::Node& node) {
  return node.input(2)->constant->to_ints()[0];
}

// Its input lies in -1 .. 3, what HardSwish gives above -0.375.
class LopsidedNet : public BlockBuilder {
 public:
  LopsidedNet() {
    auto* y = op(OpKind::kHardSwish, "swish", {conv(x, "first", 8)});
    y = relu(conv(y, "second", 8), "relu");
    graph.add_output(conv(y, "last", 4));
    for (int i = 0; i < 4; ++i) images.push_back(ir::Tensor::of<float>({1, 4, 8, 8}, random(4 * 8 * 8, -1, 3)));
  }
  std::vector<ir::Tensor> images;
};

TEST(Asymmetric, CodesReachFromTheLeastToTheLargestValue) {
  LopsidedNet b;
  quant::QuantOptions options;
  options.calibration.method = quant::CalibrationMethod::kMax;
  options.placement.asymmetric_activations = true;
  const ir::Graph graph = testing::calibrated(b.graph, options, b.images);
  const ir::Node& input = quantizer_of(graph, "input");
  EXPECT_NEAR(ir::scalar(input.input(1)).value(), 4.0 / 255, 0.02 / 255);
  EXPECT_NEAR(static_cast<double>(zero_point(input)), -64, 1);
  EXPECT_EQ(zero_point(quantizer_of(graph, "relu")), -128) << "nothing is negative";
  const int64_t swish = zero_point(quantizer_of(graph, "swish"));
  EXPECT_GT(swish, -128);
  EXPECT_LT(swish, -64);
  for (const auto& node : graph.nodes())
    if (ir::is_quantizer(node.get())) {
      EXPECT_EQ(node->get_string("state"), ir::kFrozen) << node->name;
      if (node->input(0)->is_constant()) {
        EXPECT_EQ(zero_point(*node), 0) << node->name;
      }
    }
}

TEST(Asymmetric, LosesLessThanSymmetricWhereRangesAreLopsided) {
  LopsidedNet b;
  for (const quant::CalibrationMethod method : {quant::CalibrationMethod::kMax, quant::CalibrationMethod::kMse}) {
    quant::QuantOptions symmetric;
    symmetric.calibration.method = method;
    quant::QuantOptions asymmetric = symmetric;
    asymmetric.placement.asymmetric_activations = true;
    const double before = testing::sqnr_db(b.graph, testing::calibrated(b.graph, symmetric, b.images), b.images);
    const double after = testing::sqnr_db(b.graph, testing::calibrated(b.graph, asymmetric, b.images), b.images);
    EXPECT_GT(after, before + 2);
  }
}

TEST(Asymmetric, IsUnsignedForTargetsThatHaveIt) {
  LopsidedNet b;
  quant::QuantOptions options;
  options.placement.asymmetric_activations = true;
  options.placement.target = quant::Target::kOnnxRuntime;
  const ir::Graph graph = testing::calibrated(b.graph, options, b.images);
  EXPECT_EQ(quantizer_of(graph, "input").get_int("qmin"), 0);
  EXPECT_EQ(quantizer_of(graph, "input").get_int("qmax"), 255);
  EXPECT_NEAR(static_cast<double>(zero_point(quantizer_of(graph, "input"))), 64, 1);
  EXPECT_EQ(zero_point(quantizer_of(graph, "relu")), 0);
  options.placement.target = quant::Target::kTensorRt;
  EXPECT_THAT(
      [&] { testing::calibrated(b.graph, options, b.images); },
      ThrowsMessage<UserError>(HasSubstr("'input' would be asymmetric, and the target tensorrt takes zero points "
                                         "of 0 alone; leave quant.activations.asymmetric out")));
}

// Unless the user decides, by what lies above a tensor and by the target.
TEST(Asymmetric, IsAutomaticBehindSwishForTargetsThatTakeIt) {
  LopsidedNet b;
  for (const quant::Target target : {quant::Target::kOpenVino, quant::Target::kOnnxRuntime}) {
    quant::QuantOptions options;
    options.placement.target = target;
    const ir::Graph graph = testing::calibrated(b.graph, options, b.images);
    EXPECT_EQ(quantizer_of(graph, "swish").get_int("qmin"), 0);
    EXPECT_GT(zero_point(quantizer_of(graph, "swish")), 0);
    EXPECT_LT(zero_point(quantizer_of(graph, "swish")), 64);
    EXPECT_EQ(quantizer_of(graph, "input").get_int("qmin"), -128);
    EXPECT_EQ(zero_point(quantizer_of(graph, "input")), 0);
    EXPECT_EQ(zero_point(quantizer_of(graph, "relu")), 0);
    options.placement.asymmetric_activations = false;
    EXPECT_EQ(zero_point(quantizer_of(testing::calibrated(b.graph, options, b.images), "swish")), 0);
  }
  for (const quant::Target target : {quant::Target::kAny, quant::Target::kTensorRt}) {
    quant::QuantOptions options;
    options.placement.target = target;
    EXPECT_EQ(zero_point(quantizer_of(testing::calibrated(b.graph, options, b.images), "swish")), 0);
  }
}

TEST(HardlyNegative, IsWhatActivationsWithAShortEndGiveMovedPooledAndGated) {
  BlockBuilder b({ir::kDynamic, 4, 8, 8});
  const auto conv = [&](const std::string& name) { return b.conv(b.x, name, 4); };
  const auto is = [](const ir::Value* value) { return quant::hardly_negative(value); };
  ir::Value* plain = conv("plain");
  EXPECT_FALSE(is(b.x));
  EXPECT_FALSE(is(plain));
  EXPECT_FALSE(is(b.relu(plain, "relu"))) << "is not negative at all";
  ir::Value* swish = b.op(OpKind::kMul, "swish", {plain, b.op(OpKind::kSigmoid, "gate", {plain})});
  EXPECT_TRUE(is(swish));
  EXPECT_TRUE(is(b.op(OpKind::kMish, "mish", {plain})));
  EXPECT_TRUE(is(b.op(OpKind::kGelu, "gelu", {plain})));
  EXPECT_TRUE(is(b.op(OpKind::kElu, "elu", {plain}, {{"alpha", 1.0f}})));
  EXPECT_FALSE(is(b.op(OpKind::kElu, "long elu", {plain}, {{"alpha", 2.0f}})));
  EXPECT_TRUE(is(b.op(OpKind::kLeakyRelu, "leaky", {plain}, {{"alpha", 0.1f}})));
  EXPECT_FALSE(is(b.op(OpKind::kLeakyRelu, "half", {plain}, {{"alpha", 0.5f}})));
  ir::Value* pooled = b.op(OpKind::kGlobalAveragePool, "pool", {swish});
  EXPECT_TRUE(is(pooled));
  ir::Value* gate = b.op(OpKind::kSigmoid, "excite", {b.conv(pooled, "squeeze", 4)});
  EXPECT_TRUE(is(b.op(OpKind::kMul, "gated", {swish, gate})));
  EXPECT_TRUE(is(b.op(OpKind::kMul, "gated2", {gate, swish})));
  EXPECT_FALSE(is(b.op(OpKind::kMul, "gated3", {plain, gate})));
  const auto concat = [&](const std::string& name, const std::vector<ir::Value*>& parts) {
    return b.op(OpKind::kConcat, name, parts, {{"axis", int64_t{1}}});
  };
  EXPECT_TRUE(is(concat("joined", {swish, b.relu(plain, "relu2")})));
  EXPECT_FALSE(is(concat("joined2", {swish, plain})));
  EXPECT_FALSE(is(b.op(OpKind::kAdd, "sum", {swish, plain})));
}

TEST(Asymmetric, FewerBitsHaveAZeroPointOfTheirOwn) {
  LopsidedNet b;
  quant::QuantOptions options;
  options.placement.asymmetric_activations = true;
  options.placement.activation_bits = 4, options.placement.outer_bits = 2;
  const ir::Graph graph = testing::calibrated(b.graph, options, b.images);
  const ir::Node& input = quantizer_of(graph, "input");
  EXPECT_EQ(input.get_int("qmin"), -8);
  EXPECT_EQ(input.get_int("qmax"), 7);
  EXPECT_EQ(zero_point(input), -4);
}

TEST(Asymmetric, QuantizersThatShareAScaleCoverAllTheySee) {
  BlockBuilder b;
  auto* low = b.op(
      OpKind::kClip, "low",
      {b.x, b.graph.add_constant("a", ir::Tensor::scalar(-3.0f)), b.graph.add_constant("b", ir::Tensor::scalar(0.5f))});
  auto* high = b.relu(b.x, "high");
  auto* concat = b.op(OpKind::kConcat, "concat", {low, high}, {{"axis", int64_t{1}}});
  b.graph.add_output(b.conv(concat, "conv", 4));
  quant::QuantOptions options;
  options.calibration.method = quant::CalibrationMethod::kMax;
  options.placement.asymmetric_activations = options.placement.unify_concat = true;
  const ir::Graph graph =
      testing::calibrated(b.graph, options, {ir::Tensor::of<float>({1, 4, 8, 8}, b.random(256, -9, 6))});
  for (const char* tensor : {"low", "high", "concat"}) {
    EXPECT_NEAR(ir::scalar(quantizer_of(graph, tensor).input(1)).value(), 9.0 / 255, 0.2 / 255) << tensor;
    EXPECT_NEAR(static_cast<double>(zero_point(quantizer_of(graph, tensor))), -128 + 85, 1) << tensor;
  }
}

TEST(Asymmetric, ATensorOfZerosHasAZeroPoint) {
  LopsidedNet b;
  quant::QuantOptions options;
  options.placement.asymmetric_activations = true;
  const ir::Graph graph =
      testing::calibrated(b.graph, options, {ir::Tensor::of<float>({1, 4, 8, 8}, std::vector<float>(256))});
  EXPECT_EQ(zero_point(quantizer_of(graph, "input")), 0);
  EXPECT_EQ(ir::scalar(quantizer_of(graph, "input").input(1)), 1.0f);
}

TEST(Asymmetric, RangesWithoutEndsAreRefused) {
  LopsidedNet b;
  place_fake_quant(b.graph, {.asymmetric_activations = true});
  EXPECT_THAT(
      [&] {
        set_scales(b.graph, {{"input", {.amax = 1}}, {"swish", {.amax = 1}}, {"relu", {.amax = 1}}});
      },
      ThrowsMessage<UserError>(HasSubstr("is asymmetric, and the range of 'input' has no ends of its own")));
}

TEST(ParamsOfRange, CoverTheRangeAndHoldZero) {
  const auto check = [](float low, float high, int qmin, int qmax) {
    const numerics::QuantParams p = numerics::params_of_range(low, high, qmin, qmax);
    EXPECT_EQ(numerics::fake_quantize(0, p), 0);
    EXPECT_GE(p.zero_point, qmin);
    EXPECT_LE(p.zero_point, qmax);
    for (const float end : {std::min(low, 0.0f), std::max(high, 0.0f)})
      EXPECT_LE(std::abs(numerics::fake_quantize(end, p) - end), p.scale * 0.5001f) << low << " " << high;
    return p;
  };
  EXPECT_EQ(check(-1, 3, -128, 127).zero_point, -64);
  EXPECT_EQ(check(0, 2, -128, 127).zero_point, -128);
  EXPECT_EQ(check(-2, 0, -128, 127).zero_point, 127);
  EXPECT_EQ(check(1, 2, 0, 255).zero_point, 0);
  EXPECT_EQ(check(-2, -1, 0, 255).zero_point, 255);
  EXPECT_NEAR(check(-1, 1, 0, 255).zero_point, 127.5, 0.5);
  check(-1e-20f, 1e20f, -128, 127);
  EXPECT_EQ(numerics::params_of_range(0, 0, -128, 127).zero_point, 0);
}

}  // namespace
}  // namespace octet::passes

// What octet lint says of each runtime.
#include "app/lint/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "passes/block_builder.h"
#include "passes/place_fake_quant.h"
#include "support/post_training.h"

namespace octet::app {
namespace {

using ir::OpKind;
using quant::QuantOptions;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

// A residual block of convolutions over 16 channels, a pool, a product.
class Residual : public passes::BlockBuilder {
 public:
  Residual() : BlockBuilder({1, 16, 8, 8}) {
    auto* stem = relu(conv(x, "stem", 16, 3, true), "stem_relu");
    auto* y = relu(add(conv(stem, "conv", 16, 3, true), stem, "add"), "relu");
    auto* mean = op(OpKind::kGlobalAveragePool, "mean", {y});
    graph.add_output(gemm(op(OpKind::kFlatten, "flat", {mean}), "fc", 10));
    images.push_back(ir::Tensor::of<float>({1, 16, 8, 8}, random(16 * 64)));
  }
  ir::Graph quantized(const QuantOptions& options = {}) const { return testing::calibrated(graph, options, images); }
  std::vector<ir::Tensor> images;
};

TEST(Lint, WholeNetworksRunInInt8) {
  const Residual b;
  const ir::Graph graph = b.quantized();
  for (const char* target : {"engine", "tensorrt:8.6", "tensorrt:10.3", "tensorrt:11.0", "openvino"}) {
    const LintVerdict v = lint(graph, target);
    EXPECT_TRUE(v.is_taken()) << lint_text(v);
    EXPECT_EQ(v.integer, 3) << lint_text(v);
    EXPECT_EQ(v.all, 3) << target;
    EXPECT_THAT(v.findings, IsEmpty()) << lint_text(v);
  }
}

TEST(Lint, OnnxRuntimeWantsResultsQuantized) {
  const Residual b;
  const LintVerdict before = lint(b.quantized(), "onnxruntime");
  EXPECT_EQ(before.integer, 1) << lint_text(before);
  EXPECT_THAT(lint_text(before),
              AllOf(HasSubstr("float  Conv 'stem': Relu 'stem_relu' is not part of the quantizer behind it"),
                    HasSubstr("float  Conv 'conv': its result is read as floats by Add 'add'"),
                    HasSubstr("octet quantize --target onnxruntime")));
  QuantOptions options;
  options.placement.target = quant::Target::kOnnxRuntime;
  const ir::Graph own = b.quantized(options);
  const LintVerdict after = lint(own, "onnxruntime");
  EXPECT_EQ(after.integer, 3) << lint_text(after);
  // And TensorRT does not take what ONNX Runtime wants.
  const LintVerdict foreign = lint(own, "tensorrt");
  EXPECT_FALSE(foreign.is_taken());
  EXPECT_EQ(foreign.integer, 0);
  EXPECT_THAT(lint_text(foreign), AllOf(HasSubstr("TensorRT 11.0 refuses the file"), HasSubstr("int32 biases"),
                                        HasSubstr("has unsigned codes")));
}

TEST(Lint, TensorRtTakesNoZeroPoints) {
  const Residual b;
  QuantOptions options;
  options.placement.asymmetric_activations = true;
  const ir::Graph graph = b.quantized(options);
  const LintVerdict v = lint(graph, "tensorrt:10.3");
  EXPECT_FALSE(v.is_taken());
  EXPECT_THAT(lint_text(v), HasSubstr("refused  the quantizer of 'stem_relu' has the zero point -128; TensorRT takes 0 "
                                      "alone"));
  for (const char* target : {"engine", "openvino"}) {
    EXPECT_TRUE(lint(graph, target).is_taken());
    EXPECT_EQ(lint(graph, target).integer, 3);
  }
}

TEST(Lint, ConvTransposeHasAnAxisByVersion) {
  passes::BlockBuilder b({1, 8, 4, 4});
  b.graph.add_output(b.op(OpKind::kConvTranspose, "up", {b.x, b.parameter("up.weight", {8, 4, 2, 2})},
                          {{"strides", std::vector<int64_t>{2, 2}}}));
  const ir::Graph graph = testing::calibrated(b.graph, {}, {ir::Tensor::of<float>({1, 8, 4, 4}, b.random(128))});
  EXPECT_TRUE(lint(graph, "tensorrt:8.2").is_taken());
  EXPECT_TRUE(lint(graph, "tensorrt:10.2").is_taken());
  for (const char* target : {"tensorrt:8.4", "tensorrt:8.6", "tensorrt:10.1"}) {
    const LintVerdict v = lint(graph, target);
    EXPECT_THAT(lint_text(v), HasSubstr("ConvTranspose 'up' has scales along axis 1 of its weights"));
    EXPECT_EQ(v.count(LintKind::kRefused), 1);
  }
}

TEST(Lint, FloatLayersAndBrokenFusionsAreNamed) {
  const Residual b;
  QuantOptions options;
  options.placement.exclude = {{.name = "conv"}};
  const ir::Graph graph = b.quantized(options);
  for (const char* target : {"engine", "tensorrt:11.0", "openvino", "onnxruntime"}) {
    const LintVerdict v = lint(graph, target);
    EXPECT_EQ(v.integer, target == std::string("onnxruntime") ? 1 : 2) << lint_text(v);
    EXPECT_GE(v.count(LintKind::kFloat), 1) << lint_text(v);
  }
  EXPECT_THAT(lint_text(lint(graph, "tensorrt:11.0")),
              AllOf(HasSubstr("float  Conv 'conv' runs in float: neither its input"), HasSubstr("strongly typed")));
  EXPECT_THAT(lint_text(lint(graph, "engine")), HasSubstr("left out of quantization: neither its input"));
  EXPECT_GE(lint(graph, "engine").count(LintKind::kReformat), 1);
}

TEST(Lint, ADlaWantsARangeForEveryTensor) {
  const Residual b;
  const LintVerdict v = lint(b.quantized(), "dla");
  EXPECT_TRUE(v.is_taken());
  EXPECT_LT(v.integer, 3);
  EXPECT_THAT(lint_text(v),
              HasSubstr("Conv 'conv' runs in FP16: tensor 'conv' has no range; octet quantize --rules dla"));
  QuantOptions options;
  options.placement.rules = {quant::PlacementRule::kDla};
  const LintVerdict whole = lint(b.quantized(options), "dla");
  EXPECT_EQ(whole.integer, 3) << lint_text(whole);
  EXPECT_EQ(whole.count(LintKind::kFloat) + whole.count(LintKind::kReformat), 0) << lint_text(whole);
}

TEST(Lint, ADlaHasLimits) {
  passes::BlockBuilder b({1, 4, 40, 40});
  auto* big = b.conv(b.x, "big", 4, 33);
  auto* pool = b.op(OpKind::kMaxPool, "pool", {big}, {{"kernel_shape", std::vector<int64_t>{9, 9}}});
  b.graph.add_output(b.op(OpKind::kErf, "erf", {b.conv(pool, "conv", 4)}));
  QuantOptions options;
  options.placement.rules = {quant::PlacementRule::kDla};
  const ir::Graph graph =
      testing::calibrated(b.graph, options, {ir::Tensor::of<float>({1, 4, 40, 40}, b.random(6400))});
  const LintVerdict v = lint(graph, "dla");
  EXPECT_THAT(lint_text(v), AllOf(HasSubstr("Conv 'big' is left to the GPU: its kernel 33x33 is outside 1 to 32"),
                                  HasSubstr("MaxPool 'pool' is left to the GPU: its window 9x9 is outside 1 to 8"),
                                  HasSubstr("Erf 'erf' is left to the GPU: a DLA does not have the operator")));
  EXPECT_EQ(v.integer, 1);
  EXPECT_EQ(v.all, 2);
}

TEST(Lint, FloatNetworksAndThoseThatObserveAreSaidSo) {
  const Residual b;
  for (const std::string& target : lint_targets()) {
    const LintVerdict v = lint(b.graph, target);
    EXPECT_EQ(v.integer, 0) << lint_text(v);
    EXPECT_EQ(v.all, 3) << target;
    EXPECT_THAT(lint_text(v), HasSubstr("note  the network has no quantizers")) << target;
  }
  ir::Graph observing = b.graph.clone();
  passes::place_fake_quant(observing);
  for (const std::string& target : lint_targets()) EXPECT_FALSE(lint(observing, target).is_taken()) << target;
}

TEST(Lint, FewerBitsAreOnlyTheEngines) {
  const Residual b;
  QuantOptions options;
  options.placement.activation_bits = options.placement.outer_bits = 4;
  const ir::Graph graph = b.quantized(options);
  EXPECT_EQ(lint(graph, "engine").count(LintKind::kNote), 0);
  EXPECT_THAT(lint_text(lint(graph, "openvino")), HasSubstr("quantizers have fewer than 8 bits"));
}

TEST(Lint, TableAndJsonHaveEveryTarget) {
  const Residual b;
  const ir::Graph graph = b.quantized();
  std::vector<LintVerdict> verdicts;
  for (const std::string& target : lint_targets()) verdicts.push_back(lint(graph, target));
  const std::string table = lint_table(verdicts);
  const nlohmann::ordered_json json = lint_json(verdicts);
  ASSERT_EQ(json["targets"].size(), lint_targets().size());
  for (size_t i = 0; i < verdicts.size(); ++i) {
    EXPECT_THAT(table, HasSubstr(verdicts[i].title));
    EXPECT_EQ(json["targets"][i]["target"], lint_targets()[i]);
    EXPECT_EQ(json["targets"][i]["int8"], verdicts[i].integer);
    EXPECT_EQ(json["targets"][i]["findings"].size(), verdicts[i].findings.size());
  }
  EXPECT_THAT([&] { lint(graph, "tensort"); }, ThrowsMessage<UserError>(HasSubstr("did you mean 'tensorrt'?")));
  EXPECT_THAT([&] { lint(graph, "openvino:2024"); },
              ThrowsMessage<UserError>(HasSubstr("only tensorrt takes a version")));
  EXPECT_THAT([&] { lint(graph, "tensorrt:7"); }, ThrowsMessage<UserError>(HasSubstr("a version from 8.0 on")));
}

}  // namespace
}  // namespace octet::app

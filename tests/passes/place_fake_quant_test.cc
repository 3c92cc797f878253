// Placement on hand-built blocks of every family, and on networks of the zoo against approved files. To approve a
// change, run with OCTET_APPROVE=1 and look at the difference in git.
#include "passes/place_fake_quant.h"
#include "passes/planned_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/files.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "models/zoo.h"
#include "passes/block_builder.h"
#include "passes/fold_batch_norm.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using quant::PlacementOptions;
using quant::PlacementRule;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void expect_approved(const std::string& file, const std::string& actual) {
  const std::string path = std::string(OCTET_SOURCE_DIR) + "/tests/passes/golden/" + file;
  const char* approve = std::getenv("OCTET_APPROVE");
  if (approve && *approve == '1') std::ofstream(path, std::ios::binary) << actual;
  EXPECT_EQ(actual, read_file(path)) << path;
}

TEST(PlacementTest, WeightAxesAndSharedTensors) {
  BlockBuilder b;
  auto* x = b.relu(b.x, "relu");
  b.graph.add_output(b.conv(x, "a", 3));
  b.graph.add_output(b.op(OpKind::kConvTranspose, "up", {x, b.parameter("up.weight", {4, 3, 2, 2})}));
  auto* flat = b.op(OpKind::kFlatten, "flatten", {x});
  b.graph.add_output(b.op(OpKind::kMatMul, "matmul", {flat, b.parameter("matmul.weight", {256, 3})}));
  b.graph.add_output(b.op(OpKind::kGemm, "gemm", {flat, b.parameter("gemm.weight", {256, 3})}));
  b.graph.add_output(b.gemm(flat, "fc", 2));
  EXPECT_EQ(planned(b.graph),
            "relu  s8 per tensor  -> Conv 'a', ConvTranspose 'up'\n"
            "a.weight  s8 per channel (axis 0)  -> Conv 'a'\n"
            "up.weight  s8 per channel (axis 1)  -> ConvTranspose 'up'\n"
            "flatten  s8 per tensor  -> MatMul 'matmul', Gemm 'gemm', Gemm 'fc'\n"
            "matmul.weight  s8 per channel (axis 1)  -> MatMul 'matmul'\n"
            "gemm.weight  s8 per channel (axis 1)  -> Gemm 'gemm'\n"
            "fc.weight  s8 per channel (axis 0)  -> Gemm 'fc'\n");
}

TEST(PlacementTest, WeightsWithoutElementsAreLeftAlone) {
  BlockBuilder b;
  b.graph.add_output(b.op(OpKind::kMatMul, "matmul", {b.x, b.parameter("matmul.weight", {8, 0})}));
  EXPECT_EQ(planned(b.graph), "");
}

TEST(PlacementTest, ResidualIsQuantizedAndTheConvolutionBranchIsNot) {
  BlockBuilder b;
  auto* x = b.relu(b.x, "relu");
  auto* y = b.bn(b.conv(b.relu(b.bn(b.conv(x, "conv1", 4), "bn1"), "relu1"), "conv2", 4), "bn2");
  b.graph.add_output(b.relu(b.add(y, x, "add"), "out"));
  const std::string expected =
      "relu  s8 per tensor  -> Conv 'conv1', Add 'add'\n"
      "relu1  s8 per tensor  -> Conv 'conv2'\n";
  EXPECT_EQ(activations(b.graph), expected);
  for (const PlacementRule rule : {PlacementRule::kResNetV1, PlacementRule::kMobileNet, PlacementRule::kEfficientNet})
    EXPECT_EQ(activations(b.graph, {.rules = {rule}}), expected);
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kInception}}),
            "relu  s8 per tensor  -> Conv 'conv1'\nrelu1  s8 per tensor  -> Conv 'conv2'\n");
  // The same after folding.
  fold_batch_norm(b.graph);
  EXPECT_EQ(activations(b.graph), expected);
}

TEST(PlacementTest, OfTwoConvolutionsTheFirstIsFused) {
  BlockBuilder b;
  auto* y = b.bn(b.conv(b.x, "main", 4, 3), "bn1");
  auto* shortcut = b.bn(b.conv(b.x, "downsample", 4), "bn2");
  b.graph.add_output(b.add(y, shortcut, "add"));
  EXPECT_EQ(activations(b.graph),
            "input  s8 per tensor  -> Conv 'main', Conv 'downsample'\n"
            "bn2  s8 per tensor  -> Add 'add'\n");
  // A convolution that stays float cannot take the residual in.
  EXPECT_EQ(activations(b.graph, {.exclude = {{.name = "main"}}}),
            "input  s8 per tensor  -> Conv 'downsample'\n"
            "bn1  s8 per tensor  -> Add 'add'\n");
}

TEST(PlacementTest, WithoutAFusibleConvolutionAllInputsOfAnAddAreQuantized) {
  BlockBuilder b;
  auto* y = b.conv(b.x, "conv", 4);  // two consumers: Add cannot be fused into it
  auto* sum = b.add(y, b.x, "add");
  b.graph.add_output(b.conv(sum, "conv2", 4));
  b.graph.add_output(b.relu(y, "other"));
  EXPECT_EQ(activations(b.graph),
            "input  s8 per tensor  -> Conv 'conv', Add 'add'\n"
            "conv  s8 per tensor  -> Add 'add'\n"
            "add  s8 per tensor  -> Conv 'conv2'\n");
}

TEST(PlacementTest, AnAddOfAConstantIsNoResidual) {
  BlockBuilder b;
  auto* y = b.add(b.conv(b.x, "conv", 4), b.parameter("shift", {4, 1, 1}), "add");
  b.graph.add_output(b.relu(y, "relu"));
  EXPECT_EQ(activations(b.graph), "input  s8 per tensor  -> Conv 'conv'\n");
}

TEST(PlacementTest, BatchNormsOfPreActivationBlocksMayBeWrittenOut) {
  for (const bool centered : {false, true})
    for (const bool shifted : {false, true})
      for (const bool activated : {false, true}) {
        BlockBuilder b;
        auto* pool = b.op(OpKind::kMaxPool, "pool", {b.x}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
        auto* x = pool;
        if (centered) x = b.op(OpKind::kSub, "center", {x, b.parameter("mean", {4, 1, 1})});
        x = b.op(OpKind::kMul, "factor", {b.parameter("scale", {1, 4, 1, 1}), x});
        if (shifted) x = b.op(OpKind::kAdd, "shift", {x, b.parameter("summand", {4, 1, 1})});
        if (activated) x = b.relu(x, "relu");
        b.graph.add_output(b.add(b.conv(x, "conv", 4), pool, "add"));
        const std::string plan = activations(b.graph);
        const std::string first = centered ? "-> Sub 'center', Add 'add'" : "-> Mul 'factor', Add 'add'";
        EXPECT_EQ(plan.find(first) != std::string::npos, activated) << plan;
        EXPECT_EQ(plan.find("Mul 'factor'") != std::string::npos, activated && !centered) << plan;
      }
}

TEST(PlacementTest, PreActivationBlocksQuantizeStandaloneBatchNormAndMaxPool) {
  BlockBuilder b;
  auto* pool = b.op(OpKind::kMaxPool, "pool", {b.x}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  auto* pre = b.relu(b.bn(pool, "pre"), "relu");
  b.graph.add_output(b.add(b.conv(pre, "conv", 4), pool, "add"));
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kResNetV2}}),
            "input  s8 per tensor  -> MaxPool 'pool'\n"
            "pool  s8 per tensor  -> BatchNormalization 'pre', Add 'add'\n"
            "relu  s8 per tensor  -> Conv 'conv'\n");
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kResNetV1}}),
            "relu  s8 per tensor  -> Conv 'conv'\n"
            "pool  s8 per tensor  -> Add 'add'\n");
}

TEST(PlacementTest, SqueezeAndExciteIsQuantizedAndSwishIsNot) {
  BlockBuilder b;
  auto* y = b.silu(b.conv(b.x, "conv", 4), "swish");
  auto* s = b.op(OpKind::kGlobalAveragePool, "pool", {y});
  s = b.silu(b.conv(s, "reduce", 2), "swish2");
  s = b.op(OpKind::kSigmoid, "gate", {b.conv(s, "expand", 4)});
  b.graph.add_output(b.conv(b.op(OpKind::kMul, "scale", {y, s}), "project", 4));
  const std::string expected =
      "input  s8 per tensor  -> Conv 'conv'\n"
      "swish  s8 per tensor  -> GlobalAveragePool 'pool', Mul 'scale'\n"
      "pool  s8 per tensor  -> Conv 'reduce'\n"
      "swish2  s8 per tensor  -> Conv 'expand'\n"
      "gate  s8 per tensor  -> Mul 'scale'\n"
      "scale  s8 per tensor  -> Conv 'project'\n";
  EXPECT_EQ(activations(b.graph), expected);
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kEfficientNet}}), expected);
  EXPECT_THAT(activations(b.graph, {.rules = {PlacementRule::kMobileNet}}), ::testing::Not(HasSubstr("Mul 'scale'")));
}

TEST(PlacementTest, UnsignedTensorsAreThoseThatCannotBeNegative) {
  BlockBuilder b;
  auto* positive = b.relu(b.conv(b.x, "conv1", 4), "relu");
  auto* pool = b.op(OpKind::kGlobalAveragePool, "pool", {positive});
  auto* flat = b.op(OpKind::kFlatten, "flatten", {pool});
  b.graph.add_output(b.gemm(b.gemm(flat, "fc1", 4), "fc2", 4));
  auto* zero = b.graph.add_constant("zero", ir::Tensor::scalar<float>(0));
  auto* minus = b.graph.add_constant("minus", ir::Tensor::scalar<float>(-1));
  b.graph.add_output(b.conv(b.op(OpKind::kClip, "clip0", {b.x, zero}), "conv2", 4));
  b.graph.add_output(b.conv(b.op(OpKind::kClip, "clip1", {b.x, minus}), "conv3", 4));
  EXPECT_EQ(activations(b.graph, {.unsigned_activations = true}),
            "input  s8 per tensor  -> Conv 'conv1'\n"
            "relu  u8 per tensor  -> GlobalAveragePool 'pool'\n"
            "flatten  u8 per tensor  -> Gemm 'fc1'\n"
            "fc1  s8 per tensor  -> Gemm 'fc2'\n"
            "clip0  u8 per tensor  -> Conv 'conv2'\n"
            "clip1  s8 per tensor  -> Conv 'conv3'\n");
}

TEST(PlacementTest, WeightsMayShareOneScale) {
  BlockBuilder b;
  b.graph.add_output(b.gemm(b.op(OpKind::kFlatten, "flatten", {b.conv(b.x, "conv", 4)}), "fc", 4));
  const std::string text = quant::placement_text(quant::plan_placement(b.graph, {.weights_per_tensor = true}));
  EXPECT_EQ(text.find("per channel"), std::string::npos) << text;
  EXPECT_NE(text.find("conv.weight  s8 per tensor  -> Conv 'conv'"), std::string::npos) << text;
  place_fake_quant(b.graph, {.weights_per_tensor = true});
  for (const auto& node : b.graph.nodes()) {
    if (node->kind != OpKind::kFakeQuantize) continue;
    EXPECT_TRUE(node->input(1)->constant->shape().empty()) << node->name;
  }
}

TEST(PlacementTest, FewerBitsWithinTheOuterLayers) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.relu(b.conv(b.x, "first", 4), "relu1"), "middle", 4), "relu2");
  b.graph.add_output(b.conv(y, "last", 4));
  const quant::PlacementOptions few{.activation_bits = 4, .weight_bits = 3};
  const std::string text = quant::placement_text(quant::plan_placement(b.graph, few));
  for (const char* line :
       {"input  s8 ", "first.weight  s8 ", "relu1  s4 ", "middle.weight  s3 ", "relu2  s8 ", "last.weight  s8 "})
    EXPECT_THAT(text, HasSubstr(line));
  quant::PlacementOptions all = few;
  all.outer_bits = 2;
  all.unsigned_activations = true;
  EXPECT_THAT(activations(b.graph, all),
              ::testing::AllOf(HasSubstr("input  s4 "), HasSubstr("relu1  u4 "), HasSubstr("relu2  u4 ")));
  place_fake_quant(b.graph, all);
  for (const auto& node : b.graph.nodes()) {
    if (node->kind != OpKind::kFakeQuantize) continue;
    const bool weights = node->input(0)->is_constant(), input = node->input(0)->name == "input";
    EXPECT_EQ(node->get_int("qmin"), weights ? -3 : input ? -8 : 0) << node->name;
    EXPECT_EQ(node->get_int("qmax"), weights ? 3 : input ? 7 : 15) << node->name;
  }
}

TEST(PlaceFakeQuantTest, NodesNamesAndReaders) {
  BlockBuilder b;
  auto* y = b.conv(b.x, "conv1", 3);
  b.graph.add_output(y);
  b.graph.add_output(b.op(OpKind::kSoftmax, "softmax", {b.x}));
  b.graph.add_output(b.conv(y, "conv2", 4));
  EXPECT_EQ(place_fake_quant(b.graph), 4);
  ir::verify(b.graph);
  expect_approved("placed.txt", ir::to_text(b.graph));
  // A graph output and a float reader keep the float tensor.
  EXPECT_EQ(b.graph.outputs()[0]->name, "conv1");
  EXPECT_EQ(b.graph.find_node("softmax")->input(0)->name, "input");
}

TEST(PlaceFakeQuantTest, RefusesAGraphThatIsQuantizedAlready) {
  BlockBuilder b;
  b.graph.add_output(b.conv(b.x, "conv1", 3));
  place_fake_quant(b.graph);
  EXPECT_THAT(
      [&] { place_fake_quant(b.graph); },
      ThrowsMessage<UserError>(HasSubstr("graph 'block' is quantized already, at least in part (FakeQuantize")));
}

TEST(PlaceFakeQuantTest, RemovalGivesTheFloatGraphBack) {
  ir::Graph graph = models::build_model({.arch = "resnet20", .num_classes = 10, .input = {1, 28, 28}});
  const std::string before = ir::to_text(graph);
  const int placed = place_fake_quant(graph);
  EXPECT_GT(placed, 40);
  ir::verify(graph);
  EXPECT_EQ(remove_fake_quant(graph), placed);
  EXPECT_EQ(ir::to_text(graph), before);
}

TEST(RemoveFakeQuant, KeepsTheNamesOfOutputs) {
  BlockBuilder b;
  const auto quantized = [&](ir::Value* v, const std::string& name) {
    return b.op(ir::OpKind::kFakeQuantize, name,
                {v, b.graph.add_constant(name + ".scale", ir::Tensor::scalar(0.5f)),
                 b.graph.add_constant(name + ".zero", ir::Tensor::scalar<int8_t>(0))});
  };
  ir::Value* relu = b.relu(b.x, "relu");
  // Of a tensor that is itself an output, of a graph input, and of one that nothing else reads.
  for (ir::Value* v : {relu, quantized(relu, "q_output"), quantized(b.x, "q_input"), quantized(b.relu(b.x, "r"), "q")})
    b.graph.add_output(v);
  EXPECT_EQ(remove_fake_quant(b.graph), 3);
  ir::infer_shapes(b.graph);
  ir::verify(b.graph);
  std::vector<std::string> outputs, made_by;
  for (const ir::Value* v : b.graph.outputs()) outputs.push_back(v->name), made_by.push_back(v->producer->info().name);
  EXPECT_EQ(outputs, (std::vector<std::string>{"relu", "q_output", "q_input", "q"}));
  EXPECT_EQ(made_by, (std::vector<std::string>{"Relu", "Identity", "Identity", "Relu"}));
}

struct ZooCase {
  std::string arch;
  PlacementRule family;
  // That the family's rule quantizes and auto does not, as nothing else reads their input.
  std::set<std::string> pools = {};
};

class ZooPlacement : public ::testing::TestWithParam<ZooCase> {};

TEST_P(ZooPlacement, MatchesTheApprovedText) {
  const auto& [arch, family, pools] = GetParam();
  ir::Graph graph = models::build_model(models::default_options(arch));
  fold_batch_norm(graph);
  const PlacementOptions options = {.rules = {family}};
  auto plan = quant::plan_placement(graph, options);
  expect_approved("placement_" + arch + ".txt", quant::placement_text(plan));
  const size_t quantizers = plan.size();
  // Beside these pools the family's own rules place the same as auto does.
  for (const std::string& pool : pools)
    EXPECT_EQ(std::erase_if(plan, [&](const auto& p) { return p.uses.size() == 1 && p.uses[0].node->name == pool; }),
              1u)
        << pool;
  EXPECT_EQ(planned(graph), quant::placement_text(plan));
  // Every weighted node reads quantized activations and weights; no tensor is quantized twice.
  EXPECT_EQ(static_cast<size_t>(place_fake_quant(graph, options)), quantizers);
  ir::verify(graph);
  std::set<const ir::Value*> seen;
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::kFakeQuantize) {
      EXPECT_TRUE(seen.insert(node->input(0)).second) << node->name;
    }
    if (node->kind != OpKind::kConv && node->kind != OpKind::kGemm) continue;
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_NE(node->input(i)->producer, nullptr) << node->name;
      EXPECT_EQ(node->input(i)->producer->kind, OpKind::kFakeQuantize) << node->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ZooPlacement,
                         ::testing::Values(ZooCase{"resnet20", PlacementRule::kResNetV1},
                                           ZooCase{"resnet18", PlacementRule::kResNetV1},
                                           ZooCase{"resnet50", PlacementRule::kResNetV1},
                                           ZooCase{"resnet50_v2", PlacementRule::kResNetV2, {"pool1_pool"}},
                                           ZooCase{"mobilenet_v1", PlacementRule::kMobileNet},
                                           ZooCase{"mobilenet_v2", PlacementRule::kMobileNet},
                                           ZooCase{"mobilenet_v3_small", PlacementRule::kAuto},
                                           ZooCase{"efficientnet_b0", PlacementRule::kEfficientNet},
                                           ZooCase{"inception_v3", PlacementRule::kInception, {"maxpool1", "maxpool2"}},
                                           ZooCase{"shufflenet_v2_x0_5", PlacementRule::kAuto},
                                           ZooCase{"vit_tiny", PlacementRule::kAuto}),
                         [](const auto& info) { return info.param.arch; });

}  // namespace
}  // namespace octet::passes

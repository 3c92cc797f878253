// The rules that place quantizers as other tools do (tao, dla, tfmot): behind what makes a tensor.
#include "quant/placement_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/evaluate_graph.h"
#include "ir/query.h"
#include "ir/verify.h"
#include "models/zoo.h"
#include "passes/block_builder.h"
#include "passes/fold_batch_norm.h"
#include "passes/place_fake_quant.h"
#include "passes/planned_text.h"
#include "quant/tensor_ranges.h"
#include "support/post_training.h"

namespace octet::passes {
namespace {

using ir::OpKind;
using quant::PlacementOptions;
using quant::PlacementRule;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A residual block, a pool, and a head of a convolution and its Sigmoid.
class ResidualNet : public BlockBuilder {
 public:
  ResidualNet() {
    auto* stem = relu(bn(conv(x, "stem", 4), "stem_bn"), "stem_relu");
    auto* y = bn(conv(stem, "conv", 4, 3), "bn");
    y = relu(add(y, stem, "add"), "relu");
    auto* pool = op(OpKind::kMaxPool, "pool", {y}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
    y = relu(conv(pool, "body", 4), "body_relu");
    graph.add_output(op(OpKind::kSigmoid, "score", {conv(y, "cov", 1)}));
    graph.add_output(conv(y, "bbox", 4));
    for (int i = 0; i < 4; ++i) images.push_back(ir::Tensor::of<float>({1, 4, 8, 8}, random(4 * 8 * 8, -2, 3)));
  }
  std::vector<ir::Tensor> images;
};

TEST(TaoRules, QuantizeBehindFusedBlocksAndLeaveTheOutputsAlone) {
  ResidualNet b;
  fold_batch_norm(b.graph);
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kTao}}),
            "input  s8 per tensor  -> Conv 'stem'\n"
            "stem_relu  s8 per tensor  -> Conv 'conv', Add 'add'  (ReLU6)\n"
            "bn  s8 per tensor  -> Add 'add'\n"
            "add  s8 per tensor  -> Relu 'relu'\n"
            "relu  s8 per tensor  -> MaxPool 'pool'  (ReLU6)\n"
            "pool  s8 per tensor  -> Conv 'body'\n"
            "body_relu  s8 per tensor  -> Conv 'cov', Conv 'bbox'  (ReLU6)\n");
  EXPECT_EQ(weights(b.graph, {.rules = {PlacementRule::kTao}}),
            "stem.weight  s8 per channel (axis 0)  -> Conv 'stem'\n"
            "conv.weight  s8 per channel (axis 0)  -> Conv 'conv'\n"
            "body.weight  s8 per channel (axis 0)  -> Conv 'body'\n");
}

TEST(TaoRules, AreTheSameBeforeBatchNormsAreFolded) {
  ResidualNet b;
  const std::string before = activations(b.graph, {.rules = {PlacementRule::kTao}});
  fold_batch_norm(b.graph);
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kTao}}), before);
}

TEST(TaoRules, ReluBecomesRelu6WhereItsResultIsQuantized) {
  BlockBuilder b;
  auto* y = b.relu(b.conv(b.x, "first", 4), "relu");
  y = b.relu(b.conv(y, "second", 4), "kept");
  b.graph.add_output(b.relu(b.conv(y, "last", 4), "end"));
  ir::Graph graph = b.graph.clone();
  place_fake_quant(graph, {.rules = {PlacementRule::kTao}, .exclude = {{.name = "kept"}}});
  ir::verify(graph);
  const ir::Node* relu6 = graph.find_node("relu");
  ASSERT_EQ(relu6->kind, OpKind::kClip);
  EXPECT_EQ(ir::scalar(relu6->input(1)), 0.0f);
  EXPECT_EQ(ir::scalar(relu6->input(2)), 6.0f);
  EXPECT_EQ(graph.find_node("kept")->kind, OpKind::kRelu) << "the user's word wins";
  EXPECT_EQ(graph.find_node("end")->kind, OpKind::kRelu) << "an output stays as it is";
  // It cuts off what it says: nothing but the activation differs from the float network.
  const ir::Tensor image = ir::Tensor::of<float>({1, 4, 8, 8}, b.random(4 * 8 * 8, -30, 30));
  float before = 0, after = 0;
  ir::evaluate_graph(b.graph, {image}, [&](const ir::Value& v, const ir::Tensor& t) {
    if (v.name == "relu")
      for (const float e : t.to_floats()) before = std::max(before, e);
  });
  ir::evaluate_graph(graph, {image}, [&](const ir::Value& v, const ir::Tensor& t) {
    if (v.name == "relu")
      for (const float e : t.to_floats()) after = std::max(after, e);
  });
  EXPECT_GT(before, 6);
  EXPECT_EQ(after, 6);
}

TEST(TaoRules, LastLayersInFloatReadWhatIsQuantizedAllTheSame) {
  ResidualNet b;
  fold_batch_norm(b.graph);
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kTao}, .quantize_last_layer = false}),
            activations(b.graph, {.rules = {PlacementRule::kTao}}));
}

TEST(DlaRules, GiveEveryTensorARange) {
  ResidualNet b;
  fold_batch_norm(b.graph);
  // What lies in front of a Relu has the range of what comes out; pools, and operands of sums, share one.
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kDla}}),
            "input  s8 per tensor  -> Conv 'stem'\n"
            "stem_relu  s8 per tensor scale of 'bn'  -> Conv 'conv', Add 'add'\n"
            "bn  s8 per tensor scale of 'bn'  -> Add 'add'\n"
            "relu  s8 per tensor scale of 'relu'  -> MaxPool 'pool'\n"
            "pool  s8 per tensor scale of 'relu'  -> Conv 'body'\n"
            "body_relu  s8 per tensor  -> Conv 'cov', Conv 'bbox'\n"
            "cov  s8 per tensor  -> Sigmoid 'score'\n"
            "score  s8 per tensor  -> output\n"
            "bbox  s8 per tensor  -> output\n");
  EXPECT_THAT([&] { activations(b.graph, {.rules = {PlacementRule::kDla}, .unsigned_activations = true}); },
              ThrowsMessage<UserError>(HasSubstr("a DLA (quant.rules) has signed codes alone")));
}

// Nothing is left to be measured for a cache that a DLA takes, and no pool or sum has unequal ranges.
class DlaZoo : public ::testing::TestWithParam<const char*> {};

TEST_P(DlaZoo, NeedsNoFurtherRange) {
  ir::Graph graph = models::build_model(models::default_options(GetParam()));
  fold_batch_norm(graph);
  place_fake_quant(graph, {.rules = {PlacementRule::kDla}});
  ir::verify(graph);
  // Another range for every scale, so that only shared ones are equal.
  std::map<ir::Value*, float> scales;
  for (const auto& node : graph.nodes())
    if (ir::is_quantizer(node.get()) && !node->input(0)->is_constant())
      scales.emplace(node->input(1), 0.01f * static_cast<float>(scales.size() + 1));
  for (const auto& [value, scale] : scales) value->constant = ir::Tensor::scalar(scale);
  quant::TensorRanges ranges;
  for (const auto& [value, range] : quant::quantizer_ranges(graph)) {
    // Outputs get their names back.
    std::string name = value->name;
    if (name.ends_with("/float")) name.resize(name.size() - 6);
    ranges[name] = range;
  }
  remove_fake_quant(graph);
  EXPECT_EQ(quant::unequal_ranges(graph, ranges), std::vector<std::string>{});
  quant::derive_ranges(graph, ranges);
  EXPECT_EQ(quant::tensors_without_range(graph, ranges), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Networks, DlaZoo,
                         ::testing::Values("resnet18", "resnet50_v2", "mobilenet_v2", "efficientnet_b0",
                                           "inception_v3"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TfmotRules, QuantizeOutputsOfLayersWithAZeroPoint) {
  ResidualNet b;
  const std::string expected =
      "input  s8 per tensor asymmetric  -> Conv 'stem'\n"
      "stem_relu  s8 per tensor asymmetric  -> Conv 'conv', Add 'add'\n"
      "bn  s8 per tensor asymmetric  -> Add 'add'\n"
      "relu  s8 per tensor asymmetric  -> MaxPool 'pool'\n"
      "body_relu  s8 per tensor asymmetric  -> Conv 'cov', Conv 'bbox'\n"
      "cov  s8 per tensor asymmetric  -> Sigmoid 'score'\n"
      "score  s8 per tensor asymmetric  -> output\n"
      "bbox  s8 per tensor asymmetric  -> output\n";
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kTfmot}}), expected);
  fold_batch_norm(b.graph);
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kTfmot}}), expected);
  EXPECT_THAT(weights(b.graph, {.rules = {PlacementRule::kTfmot}}), HasSubstr("bbox.weight"));
  EXPECT_THAT([&] { activations(b.graph, {.target = quant::Target::kTensorRt, .rules = {PlacementRule::kTfmot}}); },
              ThrowsMessage<UserError>(HasSubstr("takes zero points of 0 alone; leave the rules tfmot out")));
}

TEST(TfmotRules, AConcatIsQuantizedInsteadOfWhatItJoins) {
  BlockBuilder b;
  auto* one = b.relu(b.conv(b.x, "one", 4), "relu1");
  auto* two = b.relu(b.conv(b.x, "two", 4), "relu2");
  b.graph.add_output(b.conv(b.op(OpKind::kConcat, "concat", {one, two}, {{"axis", int64_t{1}}}), "last", 4));
  EXPECT_EQ(activations(b.graph, {.rules = {PlacementRule::kTfmot}}),
            "input  s8 per tensor asymmetric  -> Conv 'one', Conv 'two'\n"
            "concat  s8 per tensor asymmetric  -> Conv 'last'\n"
            "last  s8 per tensor asymmetric  -> output\n");
}

TEST(TensorRules, OutputsKeepTheirNamesAndQuantizersCanBeTakenOut) {
  for (const PlacementRule rule : {PlacementRule::kTao, PlacementRule::kDla, PlacementRule::kTfmot}) {
    ResidualNet b;
    fold_batch_norm(b.graph);
    const auto names = [](const ir::Graph& graph) {
      std::vector<std::string> out;
      for (const ir::Value* v : graph.outputs()) out.push_back(v->name);
      return out;
    };
    const std::vector<std::string> before = names(b.graph);
    ir::Graph graph = b.graph.clone();
    const int placed = place_fake_quant(graph, {.rules = {rule}});
    ir::verify(graph);
    EXPECT_EQ(names(graph), before);
    EXPECT_EQ(graph.outputs()[1]->producer->kind == OpKind::kFakeQuantize, rule != PlacementRule::kTao);
    EXPECT_EQ(remove_fake_quant(graph), placed);
    EXPECT_EQ(names(graph), before);
  }
}

// What each costs, on a network whose activations stay below 6: all of them compute what the float network does.
TEST(TensorRules, ComputeTheNetwork) {
  ResidualNet b;
  fold_batch_norm(b.graph);
  for (const PlacementRule rule : {PlacementRule::kDla, PlacementRule::kTfmot}) {
    quant::QuantOptions options;
    options.placement.rules = {rule};
    const ir::Graph graph = testing::calibrated(b.graph, options, b.images);
    EXPECT_GT(testing::sqnr_db(b.graph, graph, b.images), 25);
  }
}

}  // namespace
}  // namespace octet::passes

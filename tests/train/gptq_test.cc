#include "train/gptq.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "train/constants.h"
#include "train/layer_examples.h"
#include "train/layer_moments.h"
#include "train/small_training.h"

namespace octet::train {
namespace {

using ir::Attributes;
using ir::OpKind;
using ir::Shape;
using testing::normal_constant;
using testing::quadrants;

struct LayerCase {
  std::string name;
  OpKind kind;
  Shape before;  // what the 8x8 pictures are reshaped to, behind the batch
  Shape weights;
  Attributes attributes;
};

// Quantized weights of so many bits behind a float input, which the layers before are for: codes of 4 bits, too.
ir::Graph layer_network(const LayerCase& c, bool quantized_input = true) {
  ir::Graph g;
  ir::Value* x = g.add_input("input", {ir::DataType::kFloat32, Shape{ir::kDynamic, 1, 8, 8}});
  const auto quantized = [&](ir::Value* v, const std::string& name, float scale, int64_t least, int64_t most) {
    return g.add(OpKind::kFakeQuantize, name,
                 {v, g.add_constant(name + "/scale", ir::Tensor::scalar(scale)),
                  g.add_constant(name + "/zero_point", ir::Tensor::of<int8_t>({}, std::vector<int8_t>{0}))},
                 {{"qmin", least}, {"qmax", most}});
  };
  if (quantized_input) x = quantized(x, "input/fake_quantize", 1.0f / 7, -8, 7);
  std::vector<int64_t> shape{0};
  shape.insert(shape.end(), c.before.begin(), c.before.end());
  const int64_t rank = static_cast<int64_t>(shape.size());
  x = g.add(OpKind::kReshape, "reshape", {x, g.add_constant("shape", ir::Tensor::of<int64_t>({rank}, shape))});
  ir::Value* w = g.add_constant("weight", normal_constant(c.weights, 0.5f, 11), true);
  w = quantized(w, "weight/fake_quantize", 0.4f, -3, 3);
  g.add_output(g.add(c.kind, "layer", {x, w}, c.attributes));
  ir::infer_shapes(g);
  return g;
}

std::vector<LayerCase> linear_layers() {
  using Ints = std::vector<int64_t>;
  return {
      {"padded", OpKind::kConv, {1, 8, 8}, {6, 1, 3, 3}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"strided, in groups",
       OpKind::kConv,
       {4, 4, 4},
       {6, 2, 3, 2},
       {{"kernel_shape", Ints{3, 2}},
        {"pads", Ints{2, 0, 1, 1}},
        {"strides", Ints{2, 1}},
        {"dilations", Ints{1, 2}},
        {"group", int64_t{2}}}},
      {"depthwise",
       OpKind::kConv,
       {4, 4, 4},
       {4, 1, 3, 3},
       {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{4}}}},
      {"1x1", OpKind::kConv, {16, 2, 2}, {5, 16, 1, 1}, {{"kernel_shape", Ints{1, 1}}}},
      {"over one axis",
       OpKind::kConv,
       {4, 16},
       {6, 4, 3},
       {{"kernel_shape", Ints{3}}, {"pads", Ints{2, 0}}, {"strides", Ints{2}}}},
      {"product", OpKind::kGemm, {64}, {5, 64}, {{"transB", int64_t{1}}}},
      {"product, weights as they are", OpKind::kGemm, {64}, {64, 5}, {}},
      {"matrix product", OpKind::kMatMul, {4, 16}, {16, 5}, {}}};
}

TEST(LayerMoments, TellTheErrorOfAnyWeights) {
  const auto pictures = quadrants(40, 3);
  for (const LayerCase& c : linear_layers()) {
    ir::Graph graph = layer_network(c);
    const ir::Node& node = *graph.find_node("layer");
    const at::Tensor w = to_torch(*graph.find_value("weight")->constant);
    const std::optional<PatchProducts> products = patch_products(node, w);
    ASSERT_TRUE(products) << c.name;
    data::Loader loader(*pictures, {.batch_size = 16});
    LayerExamples examples(graph, loader, 40);
    ASSERT_EQ(examples.images(), 40);
    const LayerMoments moments = layer_moments(node, *products, w, examples);
    const at::Tensor change = at::sin(at::arange(w.numel()).reshape(w.sizes())) * 0.3;
    // As the layer itself computes them.
    Executor layer(layer_graph(node));
    double sum = 0, count = 0;
    examples.each(node, [&](const at::Tensor& inputs, const at::Tensor& targets) {
      layer.set_override(node.input(1)->name, [&](const at::Tensor&) { return w + change; });
      sum += (layer.forward({inputs}, Mode::kEval).at(0) - targets).square().sum(at::kDouble).item<double>();
      count += static_cast<double>(targets.numel()) / static_cast<double>(products->groups * products->outputs);
      return true;
    });
    EXPECT_NEAR(moments.error(as_rows(node, *products, w, change)), sum / count, 1e-4 * sum / count) << c.name;
    EXPECT_GT(moments.residual, 0) << "quantized inputs";
    EXPECT_TRUE(from_rows(node, w, as_rows(node, *products, w, w)).equal(w)) << c.name;
  }
}

std::vector<RoundedLayer> rounded_by_gptq(ir::Graph& graph, const data::Dataset& pictures, double damping = 0.01) {
  data::Loader loader(pictures, {.batch_size = 32});
  return round_by_gptq(graph, loader, {.images = 96, .damping = damping});
}

TEST(Gptq, MakesEveryLayerMoreLikeTheFloatOne) {
  const auto pictures = quadrants(96, 3);
  for (const LayerCase& c : linear_layers()) {
    ir::Graph graph = layer_network(c);
    const std::vector<float> before = graph.find_value("weight")->constant->to_floats();
    const std::vector<RoundedLayer> layers = rounded_by_gptq(graph, *pictures);
    ASSERT_EQ(layers.size(), 1u);
    EXPECT_LT(layers[0].rounded, 0.95 * layers[0].nearest) << c.name;
    EXPECT_GT(layers[0].moved, 0);
    // On the grid, next to where they were.
    const std::vector<float> after = graph.find_value("weight")->constant->to_floats();
    for (size_t i = 0; i < after.size(); ++i) {
      const float code = after[i] / 0.4f;
      ASSERT_NEAR(code, std::nearbyint(code), 1e-5) << i;
      ASSERT_LE(std::abs(code), 3.00001f);
      if (std::abs(before[i]) < 3 * 0.4f) {
        ASSERT_LT(std::abs(after[i] - before[i]), 1.001f * 0.4f) << i;
      }
    }
    EXPECT_EQ(rounded_by_gptq(graph, *pictures).at(0).moved, 0) << "weights on their grid move no more";
  }
}

// All choices of nine weights.
TEST(Gptq, IsNearTheBestThatThereIs) {
  const LayerCase c = linear_layers()[0];
  ir::Graph graph = layer_network(c);
  const ir::Node& node = *graph.find_node("layer");
  const at::Tensor w = to_torch(*graph.find_value("weight")->constant);
  const auto pictures = quadrants(96, 3);
  data::Loader loader(*pictures, {.batch_size = 32});
  LayerExamples examples(graph, loader, 96);
  const PatchProducts products = *patch_products(node, w);
  const LayerMoments moments = layer_moments(node, products, w, examples);
  const at::Tensor rows = as_rows(node, products, w, w), below = at::clamp(at::floor(rows / 0.4), -3, 3),
                   above = at::clamp(below + 1, -3, 3);
  at::Tensor best = at::full({6}, std::numeric_limits<float>::infinity());
  for (int64_t choice = 0; choice < 512; ++choice) {
    const at::Tensor up = at::bitwise_and(at::bitwise_right_shift(at::full({9}, choice, at::kLong), at::arange(9)), 1);
    const at::Tensor change = at::where(up.to(at::kBool), above, below) * 0.4 - rows;
    const at::Tensor errors = (change * (at::bmm(change, moments.patches) + 2 * moments.mixed)).sum(2).reshape({6});
    best = at::minimum(best, errors);
  }
  const double least = best.sum().item<double>() + moments.residual;
  const RoundedLayer found = rounded_by_gptq(graph, *pictures, 1e-4).at(0);
  EXPECT_GE(found.rounded, least * 0.999);
  EXPECT_LT(found.rounded - least, 0.1 * (found.nearest - least));
}

TEST(Gptq, LeavesWhatItCannotRoundAtTheNearestCodes) {
  const auto pictures = quadrants(32, 3);
  ir::Graph transposed =
      layer_network({"transposed",
                     OpKind::kConvTranspose,
                     {4, 4, 4},
                     {4, 3, 2, 2},
                     {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}}});
  const RoundedLayer layer = rounded_by_gptq(transposed, *pictures).at(0);
  EXPECT_EQ(layer.moved, 0);
  EXPECT_EQ(layer.rounded, layer.nearest);
  for (const float w : transposed.find_value("weight")->constant->to_floats())
    EXPECT_NEAR(w / 0.4f, std::nearbyint(w / 0.4f), 1e-5);
  // Inputs that are not finite have no moments.
  ir::Graph endless = layer_network(linear_layers()[0], false);
  ir::Value* scale = endless.add_constant("endless", ir::Tensor::scalar(std::numeric_limits<float>::infinity()));
  ir::Node* conv = endless.find_node("layer");
  ir::Value* product = endless.add(OpKind::kMul, "endless product", {conv->input(0), scale});
  endless.set_input(conv, 0, product);
  endless.sort_topologically();
  ir::infer_shapes(endless);
  EXPECT_EQ(rounded_by_gptq(endless, *pictures).at(0).moved, 0);
}

TEST(Gptq, GivesTheSameBitsAgain) {
  const auto pictures = quadrants(64, 3);
  for (const LayerCase& c : linear_layers()) {
    ir::Graph first = layer_network(c), second = layer_network(c);
    rounded_by_gptq(first, *pictures), rounded_by_gptq(second, *pictures);
    EXPECT_EQ(first.find_value("weight")->constant->to_floats(), second.find_value("weight")->constant->to_floats());
  }
}

}  // namespace
}  // namespace octet::train

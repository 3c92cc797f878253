#include "quant/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/infer.h"
#include "quant/placement.h"

namespace octet::quant {
namespace {

using ir::Graph;
using ir::OpKind;
using ir::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Value* floats(Graph& g, const ir::Shape& shape) {
  const std::vector<float> values(static_cast<size_t>(ir::element_count(shape)), 0.5f);
  return g.add_constant("", ir::Tensor::of<float>(shape, values));
}

Value* conv(Graph& g, Value* x, const std::string& name) {
  return g.add(OpKind::kConv, name, {x, floats(g, {4, 4, 1, 1}), floats(g, {4})});
}

// relu(conv2(relu(conv1(x))) + x), then a product.
Graph residual_block() {
  Graph g;
  g.name = "block";
  Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 4, 1, 1}});
  Value* first = g.add(OpKind::kRelu, "relu1", {conv(g, x, "conv1")});
  Value* sum = g.add(OpKind::kAdd, "sum", {conv(g, first, "conv2"), x});
  Value* flat = g.add(OpKind::kFlatten, "flat", {g.add(OpKind::kRelu, "relu2", {sum})});
  g.add_output(g.add(OpKind::kGemm, "gemm", {flat, floats(g, {4, 2})}));
  return g;
}

std::vector<std::string> quantized_activations(Target target) {
  const Graph g = residual_block();
  std::vector<std::string> out;
  for (const PlacedQuantizer& p : plan_placement(g, {.target = target}))
    if (!p.value->is_constant()) out.push_back(p.value->name + (p.qmin == 0 ? " u8" : " s8"));
  return out;
}

TEST(Target, DecidesWhatIsQuantized) {
  EXPECT_THAT(quantized_activations(Target::kAny), ElementsAre("x s8", "relu1 s8", "flat s8"));
  EXPECT_THAT(quantized_activations(Target::kTensorRt), ElementsAre("x s8", "relu1 s8", "flat s8"));
  EXPECT_THAT(quantized_activations(Target::kOpenVino), ElementsAre("x s8", "relu1 u8", "flat u8"));
  // Both operands of the sum.
  EXPECT_THAT(quantized_activations(Target::kOnnxRuntime), ElementsAre("x s8", "relu1 u8", "conv2 s8", "flat u8"));
}

TEST(Target, RefusesUnsignedActivationsWhereItTakesNone) {
  const Graph g = residual_block();
  EXPECT_THAT([&] { plan_placement(g, {.target = Target::kTensorRt, .unsigned_activations = true}); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("target tensorrt does not take")));
}

// A convolution between quantizers; `activation` behind it, and what that is read by.
struct Product {
  Graph g;
  Value* result = nullptr;
  Value* quantized(Value* x, float scale, bool is_unsigned) {
    Value* zero = is_unsigned ? g.add_constant("", ir::Tensor::scalar<uint8_t>(0))
                              : g.add_constant("", ir::Tensor::scalar<int8_t>(0));
    return g.add(OpKind::kFakeQuantize, x->name + "/q", {x, g.add_constant("", ir::Tensor::scalar<float>(scale)), zero},
                 {{"qmin", int64_t{is_unsigned ? 0 : -128}}, {"qmax", int64_t{is_unsigned ? 255 : 127}}});
  }
  Product() {
    g.name = "product";
    Value* x = g.add_input("x", {ir::DataType::kFloat32, ir::Shape{1, 4, 1, 1}});
    result =
        g.add(OpKind::kConv, "conv", {quantized(x, 0.1f, false), quantized(floats(g, {4, 4, 1, 1}), 0.01f, false)});
  }
  Value* number(float v) { return g.add_constant("", ir::Tensor::scalar<float>(v)); }
  std::vector<std::string> reasons(Value* out, Target target = Target::kOnnxRuntime) {
    g.add_output(out);
    return integer_products(g, target).reasons;
  }
};

TEST(IntegerProducts, CountsByTheRulesOfTheRuntime) {
  Product floats_behind;
  EXPECT_THAT(floats_behind.reasons(floats_behind.result),
              ElementsAre("Conv 'conv': its result is an output of the network"));
  EXPECT_EQ(integer_products(floats_behind.g, Target::kTensorRt).integer, 1);
  EXPECT_EQ(integer_products(floats_behind.g, Target::kOpenVino).all, 1);

  Product relu;
  EXPECT_THAT(relu.reasons(relu.quantized(relu.g.add(OpKind::kRelu, "relu", {relu.result}), 0.1f, true)),
              ElementsAre());
  Product is_signed;
  EXPECT_THAT(
      is_signed.reasons(is_signed.quantized(is_signed.g.add(OpKind::kRelu, "relu", {is_signed.result}), 0.1f, false)),
      ElementsAre(HasSubstr("Relu 'relu' is not part of the quantizer")));
  Product wide;
  Value* clip = wide.g.add(OpKind::kClip, "clip", {wide.result, wide.number(0), wide.number(6)});
  EXPECT_THAT(wide.reasons(wide.quantized(clip, 0.03f, true)), ElementsAre(HasSubstr("Clip 'clip'")));
  Product narrow;
  clip = narrow.g.add(OpKind::kClip, "clip", {narrow.result, narrow.number(0), narrow.number(6)});
  EXPECT_THAT(narrow.reasons(narrow.quantized(clip, 0.02f, true)), ElementsAre());
  Product sigmoid;
  EXPECT_THAT(sigmoid.reasons(sigmoid.g.add(OpKind::kSigmoid, "gate", {sigmoid.result})),
              ElementsAre("Conv 'conv': its result is read as floats by Sigmoid 'gate'"));
}

}  // namespace
}  // namespace octet::quant

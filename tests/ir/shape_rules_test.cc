// Shape rules: what they give, and what they say when something does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/data_type_codes.h"
#include "ir/infer.h"
#include "ir/rule_node.h"
#include "ir/shape_rules.h"
#include "ir/test_graph.h"

namespace octet::ir {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;
constexpr int64_t kUnknown = kDynamic;

TEST(OpsTable, EveryKindHasAShapeRuleAndIsFoundByName) {
  for (const OpInfo& info : all_ops()) {
    EXPECT_NE(info.infer, nullptr) << info.name;
    EXPECT_EQ(find_op(info.name), &info);
    EXPECT_EQ(&op_info(info.kind), &info);
    EXPECT_LE(info.min_inputs, info.max_inputs) << info.name;
    for (const AttributeInfo& a : info.attributes) {
      EXPECT_THAT((std::vector<std::string>{"int", "float", "string", "ints", "floats", "strings", "tensor"}),
                  ::testing::Contains(a.type))
          << info.name << "." << a.name;
    }
  }
  EXPECT_EQ(find_op("Conv2D"), nullptr);
  EXPECT_THAT(supported_op_list(), HasSubstr("Add, ArgMax, AveragePool, BatchNormalization"));
}

TEST(OpsTable, EveryRuleSurvivesUnknownInputs) {
  for (const OpInfo& info : all_ops()) {
    Rule rule(info.kind, info.kind == OpKind::kConcat ? Attributes{{"axis", int64_t{0}}} : Attributes{});
    for (int i = 0; i < info.min_inputs; ++i) rule.unknown();
    if (info.kind == OpKind::kCast || info.kind == OpKind::kDepthToSpace || info.kind == OpKind::kQuantizeLinear ||
        info.kind == OpKind::kDequantizeLinear)
      continue;  // need an attribute or integers; have tests of their own
    EXPECT_EQ(rule.error(), "") << info.name;
  }
}

TEST(OpsTable, ArityIsChecked) {
  EXPECT_EQ(Rule(OpKind::kRelu).in({1}).in({1}).error(), "node 'n' (Relu): 2 inputs, expected 1");
  EXPECT_EQ(Rule(OpKind::kConv).in({1, 1, 1}).error(), "node 'n' (Conv): 1 inputs, expected 2 to 3");
  EXPECT_EQ(Rule(OpKind::kConcat).error(), "node 'n' (Concat): 0 inputs, expected 1 or more");
  EXPECT_EQ(Rule(OpKind::kAdd).in({1}).absent().error(), "node 'n' (Add): required input 1 is absent");
  EXPECT_EQ(error_of([] { Rule(OpKind::kRelu).in({1}).types(2); }), "node 'n' (Relu): 2 outputs, expected at most 1");
}

TEST(ClipRule, NamesTheNodeWhateverTheLimit) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_THAT(Rule(OpKind::kClip).in({2}).in({kHuge, kHuge}).error(),
              ::testing::AllOf(HasSubstr("node 'n' (Clip): "), HasSubstr("should be a scalar")));
}

TEST(ConvRule, GivesOutputSizes) {
  const Attributes resnet_stem = {{"kernel_shape", Ints{7, 7}}, {"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}};
  EXPECT_EQ(Rule(OpKind::kConv, resnet_stem).in({kUnknown, 3, 224, 224}).in({64, 3, 7, 7}).shape(),
            "float32[?, 64, 112, 112]");
  EXPECT_EQ(Rule(OpKind::kConv, {{"dilations", Ints{2, 1}}}).in({1, 4, 9, kUnknown}).in({8, 4, 3, 3}).in({8}).shape(),
            "float32[1, 8, 5, ?]");
  EXPECT_EQ(Rule(OpKind::kConv, {{"group", int64_t{4}}}).in({2, 4, 5}).in({8, 1, 2}).shape(), "float32[2, 8, 4]");
  EXPECT_EQ(Rule(OpKind::kConv, {{"kernel_shape", Ints{3, 3}}}).in({2, 4, 5, 5}).unknown().shape(),
            "float32[2, ?, 3, 3]");
  EXPECT_EQ(Rule(OpKind::kConv).unknown().in({8, 4, 3, 3}).shape(), "float32[...]");
}

TEST(ConvRule, ResolvesAutoPad) {
  const auto conv = [](const char* mode, int64_t stride, int64_t size) {
    return Rule(OpKind::kConv, {{"auto_pad", std::string(mode)}, {"strides", Ints{stride}}})
        .in({1, 1, size})
        .in({1, 1, 3})
        .shape();
  };
  EXPECT_EQ(conv("SAME_UPPER", 2, 7), "float32[1, 1, 4]");
  EXPECT_EQ(conv("SAME_LOWER", 2, 8), "float32[1, 1, 4]");
  EXPECT_EQ(conv("VALID", 1, 8), "float32[1, 1, 6]");
  EXPECT_EQ(conv("SAME_UPPER", 2, kUnknown), "float32[1, 1, ?]");
  EXPECT_EQ(Rule(OpKind::kConv, {{"auto_pad", std::string("SAME")}}).in({1, 1, 4}).in({1, 1, 3}).error(),
            "node 'n' (Conv): auto_pad is 'SAME', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
}

TEST(ConvRule, SaysWhatDoesNotFit) {
  EXPECT_EQ(Rule(OpKind::kConv).in({1, 3, 8, 8}).in({16, 4, 3, 3}).error(),
            "node 'n' (Conv): input 0 'i0' float32[1, 3, 8, 8] has 3 channels, but input 1 'i1' "
            "float32[16, 4, 3, 3] with group 1 takes 4");
  EXPECT_THAT(Rule(OpKind::kConv, {{"group", int64_t{2}}}).in({1, 4, 8, 8}).in({15, 2, 3, 3}).error(),
              HasSubstr("15 filters cannot be divided into 2 groups"));
  EXPECT_THAT(Rule(OpKind::kConv, {{"group", int64_t{0}}}).in({1, 4, 8}).in({1, 4, 1}).error(),
              HasSubstr("group is 0, expected 1 or more"));
  EXPECT_THAT(Rule(OpKind::kConv, {{"kernel_shape", Ints{5, 3}}}).in({1, 3, 8, 8}).in({16, 3, 3, 3}).error(),
              HasSubstr("kernel_shape [5, 3] does not agree with input 1 'i1' float32[16, 3, 3, 3]"));
  EXPECT_THAT(Rule(OpKind::kConv).in({1, 3, 8, 8}).in({16, 3, 3}).error(), HasSubstr("has rank 3, expected 4"));
  EXPECT_THAT(Rule(OpKind::kConv).in({1, 0, 8, 8}).in({1 << 30, 0, 3, 3}).error(), HasSubstr("has no elements"));
  EXPECT_THAT(Rule(OpKind::kConv).in({1, 3, 2, 8}).in({16, 3, 3, 3}).error(),
              HasSubstr("a window of 3 does not fit into 2 + 0 (padding)"));
  EXPECT_THAT(Rule(OpKind::kConv).in({1, 3, 8, 8}).in({16, 3, 3, 3}).in({15}).error(),
              HasSubstr("input 2 'i2' float32[15] should have shape [16] (one bias a filter)"));
  EXPECT_THAT(Rule(OpKind::kConv, {{"strides", Ints{0, 1}}}).in({1, 3, 8, 8}).in({16, 3, 3, 3}).error(),
              HasSubstr("strides holds 0, expected 1 to"));
  EXPECT_THAT(Rule(OpKind::kConv, {{"pads", Ints{1, 1}}}).in({1, 3, 8, 8}).in({16, 3, 3, 3}).error(),
              HasSubstr("pads has 2 values, expected 4"));
  EXPECT_THAT(Rule(OpKind::kConv, {{"pads", Ints{-1, 0, 0, 0}}}).in({1, 3, 8, 8}).in({16, 3, 3, 3}).error(),
              HasSubstr("pads holds -1"));
  EXPECT_THAT(Rule(OpKind::kConv).in({3, 8}).in({16, 3, 3, 3}).error(), HasSubstr("has rank 2, expected 3 to 5"));
  EXPECT_THAT(Rule(OpKind::kConv).in({1, 3, 8}, DataType::kInt8).in({16, 3, 3}).error(),
              HasSubstr("have different data types"));
  EXPECT_THAT(Rule(OpKind::kConv, {{"group", std::string("1")}}).in({1, 3, 8}).in({16, 3, 3}).error(),
              HasSubstr("attribute group has another type than int"));
}

TEST(WindowGeometryTest, CompletesAttributes) {
  Graph graph;
  Value* x = graph.add_input("x", floats({1, 1, 6, 7}));
  Node* node = graph.add_node(OpKind::kConv, "n", {x, graph.add_constant("w", filled({1, 1, 3, 2}))}, {"y"},
                              {{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2, 1}}});
  const WindowGeometry g = window_geometry(*node, {6, 7}, {3, 2});
  EXPECT_EQ(g.pads, (Ints{1, 1, 0, 0}));  // one in each axis, before the input
  EXPECT_EQ(g.strides, (Ints{2, 1}));
  EXPECT_EQ(g.dilations, (Ints{1, 1}));
  EXPECT_THAT(error_of([&] {
                window_geometry(*node, {kUnknown, 7}, {3, 2});
              }),
              HasSubstr("auto_pad with stride 2 needs the size of spatial axis 0"));
}

TEST(WindowGeometryTest, CeilModeDropsAWindowThatWouldStartInTheTrailingPadding) {
  EXPECT_EQ(window_output(5, 2, 2, 1, 0, 0, true), 3);
  EXPECT_EQ(window_output(5, 2, 2, 1, 0, 0, false), 2);
  EXPECT_EQ(window_output(4, 2, 2, 1, 1, 1, false), 3);
  EXPECT_EQ(window_output(3, 1, 3, 1, 0, 0, true), 1);  // a second window would start at 3
  EXPECT_EQ(window_output(kUnknown, 3, 2, 1, 1, 1, false), kUnknown);
  EXPECT_THAT(error_of([] { window_output(2, 5, 1, 1, 1, 1, false); }), HasSubstr("a window of 5 does not fit"));
}

TEST(ConvTransposeRule, GivesOutputSizes) {
  const Attributes up = {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 0}}};
  EXPECT_EQ(Rule(OpKind::kConvTranspose, up).in({1, 8, 4, kUnknown}).in({8, 3, 3, 3}).shape(), "float32[1, 3, 8, ?]");
  EXPECT_EQ(Rule(OpKind::kConvTranspose, {{"group", int64_t{2}}}).in({1, 8, 4}).in({8, 3, 2}).shape(),
            "float32[1, 6, 5]");
  EXPECT_EQ(Rule(OpKind::kConvTranspose, {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2}}})
                .in({1, 8, 4})
                .in({8, 3, 3})
                .shape(),
            "float32[1, 3, 8]");
  EXPECT_THAT(Rule(OpKind::kConvTranspose).in({1, 7, 4}).in({8, 3, 2}).error(), HasSubstr("has 7 channels"));
  // A stated size of the output excuses nothing else.
  const auto stated = [](const char* key, const Ints& value) {
    return Rule(OpKind::kConvTranspose, {{"output_shape", Ints{9}}, {key, value}}).in({1, 8, 4}).in({8, 3, 2});
  };
  EXPECT_EQ(stated("strides", {2}).shape(), "float32[1, 3, 9]");
  EXPECT_THAT(stated("strides", {0}).error(), HasSubstr("strides holds 0"));
  EXPECT_THAT(stated("strides", {1, 1}).error(), HasSubstr("strides has 2 values, expected 1"));
  EXPECT_THAT(stated("dilations", {-1}).error(), HasSubstr("dilations holds -1"));
  EXPECT_THAT(stated("output_padding", {1, 1}).error(), HasSubstr("output_padding has 2 values"));
  EXPECT_THAT(stated("pads", {0}).error(), HasSubstr("pads has 1 values, expected 2"));
}

TEST(PoolRule, GivesOutputSizes) {
  const Attributes pool = {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
  EXPECT_EQ(Rule(OpKind::kMaxPool, pool).in({kUnknown, 64, 112, 112}).shape(), "float32[?, 64, 56, 56]");
  Attributes ceil = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(Rule(OpKind::kAveragePool, ceil).in({1, 2, 5, 4}).shape(), "float32[1, 2, 3, 2]");
  EXPECT_EQ(Rule(OpKind::kGlobalAveragePool).in({kUnknown, 9, kUnknown, 4}).shape(), "float32[?, 9, 1, 1]");
  EXPECT_THAT(Rule(OpKind::kMaxPool).in({1, 2, 5, 4}).error(), HasSubstr("kernel_shape has 0 values, expected 2"));
  EXPECT_THAT(
      Rule(OpKind::kMaxPool, {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{2, 0, 0, 0}}}).in({1, 2, 5, 4}).error(),
      HasSubstr("padding 2 is not smaller than the window of 2"));
}

TEST(MatrixRules, GiveOutputSizes) {
  EXPECT_EQ(Rule(OpKind::kGemm, {{"transB", int64_t{1}}}).in({kUnknown, 512}).in({10, 512}).in({10}).shape(),
            "float32[?, 10]");
  EXPECT_EQ(Rule(OpKind::kGemm, {{"transA", int64_t{1}}}).in({5, 3}).in({5, 2}).in({3, 1}).shape(), "float32[3, 2]");
  EXPECT_EQ(Rule(OpKind::kGemm).in({2, 5}).in({4, 3}).error(),
            "node 'n' (Gemm): input 0 'i0' float32[2, 5] has 5 features, but input 1 'i1' float32[4, 3] takes 4");
  EXPECT_THAT(Rule(OpKind::kGemm).in({2, 5}).in({5, 3}).in({4}).error(), HasSubstr("do not broadcast"));
  EXPECT_THAT(Rule(OpKind::kGemm).in({1, 5}).in({5, 3}).in({2, 3}).error(), HasSubstr("does not broadcast to [1, 3]"));
  EXPECT_EQ(Rule(OpKind::kMatMul).in({kUnknown, 1, 4, 5}).in({7, 5, 6}).shape(), "float32[?, 7, 4, 6]");
  EXPECT_EQ(Rule(OpKind::kMatMul).in({5}).in({5, 6}).shape(), "float32[6]");
  EXPECT_EQ(Rule(OpKind::kMatMul).in({5}).in({5}).shape(), "float32[]");
  EXPECT_THAT(Rule(OpKind::kMatMul).in({2, 5}).in({4, 3}).error(), HasSubstr("has 5 columns, but"));
}

TEST(BroadcastRule, FollowsNumpy) {
  EXPECT_EQ(Rule(OpKind::kAdd).in({kUnknown, 3, 1}).in({3, 7}).shape(), "float32[?, 3, 7]");
  EXPECT_EQ(Rule(OpKind::kMul).in({}).in({2, kUnknown}).shape(), "float32[2, ?]");
  EXPECT_EQ(Rule(OpKind::kAdd).in({kUnknown}).in({4}).shape(), "float32[4]");
  EXPECT_EQ(Rule(OpKind::kMax).in({2, 1}).in({1, 3}).in({4, 1, 1}).shape(), "float32[4, 2, 3]");
  EXPECT_EQ(Rule(OpKind::kAdd).in({2, 3}).unknown().shape(), "float32[...]");
  EXPECT_EQ(Rule(OpKind::kAdd).in({1, 64, 56, 56}).in({1, 64, 28, 28}).error(),
            "node 'n' (Add): shapes [1, 64, 56, 56] and [1, 64, 28, 28] do not broadcast: 56 against 28 in dimension 2 "
            "of the result");
  EXPECT_THAT(Rule(OpKind::kAdd).in({1}).in({1}, DataType::kInt64).error(), HasSubstr("different data types"));
  EXPECT_EQ(Rule(OpKind::kPow).in({2}).in({}, DataType::kInt64).shape(), "float32[2]");
}

TEST(ElementRules, CheckTheirParameters) {
  EXPECT_EQ(Rule(OpKind::kBatchNormalization).in({kUnknown, 4, 2, 2}).in({4}).in({4}).in({4}).in({4}).shape(),
            "float32[?, 4, 2, 2]");
  EXPECT_THAT(Rule(OpKind::kBatchNormalization).in({kUnknown, 4, 2, 2}).in({4}).in({4}).in({5}).in({4}).error(),
              HasSubstr("input 3 'i3' float32[5] should have shape [4] (one element a channel)"));
  EXPECT_EQ(Rule(OpKind::kLayerNormalization).in({kUnknown, 4, 6}).in({6}).in({6}).shape(), "float32[?, 4, 6]");
  EXPECT_THAT(Rule(OpKind::kLayerNormalization, {{"axis", int64_t{1}}}).in({kUnknown, 4, 6}).in({6}).error(),
              HasSubstr("one element for each that is normalized"));
  EXPECT_THAT(Rule(OpKind::kBatchNormalization, {{"training_mode", int64_t{1}}})
                  .in({1, 4})
                  .in({4})
                  .in({4})
                  .in({4})
                  .in({4})
                  .error(),
              HasSubstr("training_mode is set"));
  EXPECT_THAT(Rule(OpKind::kClip).in({2}).in({3}).error(), HasSubstr("should be a scalar"));
  EXPECT_EQ(Rule(OpKind::kClip).in({2}).absent().in({}).shape(), "float32[2]");
  EXPECT_THAT(Rule(OpKind::kSoftmax, {{"axis", int64_t{2}}}).in({1, 2}).error(),
              HasSubstr("axis 2 is outside of [-2, 1]"));
  EXPECT_THAT(Rule(OpKind::kPRelu).in({2, 3}).in({4, 2, 3}).error(), HasSubstr("has more dimensions than"));
  const auto dropout = Rule(OpKind::kDropout).in({2, kUnknown}).types(2);
  EXPECT_EQ(type_string(dropout[1]), "bool[2, ?]");
  EXPECT_EQ(Rule(OpKind::kCast, {{"to", int64_t{7}}}).in({2}).shape(), "int64[2]");
  EXPECT_THAT(Rule(OpKind::kCast, {{"to", int64_t{8}}}).in({2}).error(), HasSubstr("ONNX data type 8"));
}

TEST(DataTypeCodes, AreInverse) {
  for (int code = 0; code < 30; ++code) {
    const DataType type = data_type_from_onnx(code);
    if (type != DataType::kUndefined) {
      EXPECT_EQ(data_type_to_onnx(type), code);
    }
  }
  EXPECT_EQ(data_type_to_onnx(DataType::kUndefined), 0);
}

TEST(QuantRules, CheckScalesAndZeroPoints) {
  const auto quantize = [](Shape scale, Shape zero, DataType type) {
    return Rule(OpKind::kQuantizeLinear, {{"axis", int64_t{0}}}).in({8, 3}).in(scale).in(zero, type);
  };
  EXPECT_EQ(quantize({8}, {8}, DataType::kInt8).shape(), "int8[8, 3]");
  EXPECT_EQ(quantize({}, {}, DataType::kUInt8).shape(), "uint8[8, 3]");
  EXPECT_THAT(quantize({3}, {3}, DataType::kInt8).error(),
              HasSubstr("input 1 'i1' float32[3] should be a scalar or have 8 elements, one for each along axis 0"));
  EXPECT_THAT(quantize({8}, {}, DataType::kInt8).error(), HasSubstr("should have the same number of elements"));
  EXPECT_THAT(quantize({}, {}, DataType::kInt32).error(), HasSubstr("quantizes to int32"));
  EXPECT_EQ(Rule(OpKind::kQuantizeLinear).in({2, 3}).in({}).shape(), "uint8[2, 3]");
  EXPECT_EQ(Rule(OpKind::kQuantizeLinear, {{"output_dtype", int64_t{3}}}).in({2, 3}).in({}).shape(), "int8[2, 3]");
  EXPECT_THAT(Rule(OpKind::kQuantizeLinear, {{"block_size", int64_t{32}}}).in({2, 3}).in({}).error(),
              HasSubstr("block_size is 32"));
  EXPECT_EQ(Rule(OpKind::kDequantizeLinear).in({2, 3}, DataType::kInt8).in({3}).shape(), "float32[2, 3]");
  EXPECT_THAT(Rule(OpKind::kDequantizeLinear).in({2, 3}, DataType::kInt64).in({}).error(),
              HasSubstr("should be int8, uint8 or int32"));
  EXPECT_EQ(Rule(OpKind::kFakeQuantize).in({kUnknown, 3, 2, 2}).in({3}).in({3}).shape(), "float32[?, 3, 2, 2]");
  EXPECT_THAT(Rule(OpKind::kFakeQuantize).in({kUnknown, 3, 2, 2}).in({4}).in({4}).error(),
              HasSubstr("have 3 elements"));
}

TEST(Infer, SetBatchReachesEveryValue) {
  Graph graph;
  Value* x = graph.add_input("x", floats({kUnknown, 3, 8, 8}));
  Value* y = graph.add(OpKind::kConv, "conv", {x, graph.add_constant("w", filled({4, 3, 3, 3}))});
  Value* z = graph.add(OpKind::kFlatten, "flat", {y});
  graph.add_output(z);
  set_batch(graph, 6);
  EXPECT_EQ(type_string(z->type), "float32[6, 144]");
  set_batch(graph, kDynamic);
  EXPECT_EQ(type_string(z->type), "float32[?, 144]");
  EXPECT_THAT(error_of([&] { set_batch(graph, 0); }), HasSubstr("the batch size must be positive, not 0"));
}

TEST(Infer, ImpossibleInputShapesAreRefused) {
  Graph graph;
  graph.add_input("x", floats({int64_t{1} << 30, int64_t{1} << 30}));
  EXPECT_THAT(error_of([&] { infer_shapes(graph); }), HasSubstr("input 'x' has the impossible shape"));
}

}  // namespace
}  // namespace octet::ir

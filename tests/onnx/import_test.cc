// Forms, shape arithmetic and quantization, on models made here node by node.
#include "onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft_model.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::Graph;
using ir::kDynamic;
using ir::OpKind;
using ir::Shape;
using ir::Tensor;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

// --- forms of older opsets

TEST(Forms, AttributesBecomeInputs) {
  const Graph g =
      Draft(11)
          .node("Clip", {"x"}, {"c"}, {{"min", 0.0f}, {"max", 6.0f}})
          .node("Pad", {"c"}, {"p"}, {{"pads", std::vector<int64_t>{0, 0, 1, 1, 0, 0, 2, 2}}, {"value", 1.0f}})
          .node("Slice", {"p"}, {"s"},
                {{"starts", std::vector<int64_t>{1}},
                 {"ends", std::vector<int64_t>{9}},
                 {"axes", std::vector<int64_t>{2}}})
          .node("ReduceSum", {"s"}, {"r"}, {{"axes", std::vector<int64_t>{3}}, {"keepdims", int64_t{1}}})
          .node("Squeeze", {"r"}, {"y"}, {{"axes", std::vector<int64_t>{3}}})
          .import();
  EXPECT_EQ(g.find_node("n_c")->input(1)->constant->to_floats(), std::vector<float>{0});
  EXPECT_EQ(g.find_node("n_c")->input(2)->constant->to_floats(), std::vector<float>{6});
  EXPECT_EQ(int_input(g, "n_p", 1), (std::vector<int64_t>{0, 0, 1, 1, 0, 0, 2, 2}));
  EXPECT_EQ(g.find_node("n_p")->input(2)->constant->to_floats(), std::vector<float>{1});
  EXPECT_EQ(int_input(g, "n_s", 3), std::vector<int64_t>{2});
  EXPECT_EQ(int_input(g, "n_r", 1), std::vector<int64_t>{3});
  EXPECT_EQ(*g.outputs()[0]->type.shape, (Shape{kDynamic, 3, 8}));
}

TEST(Forms, GatherOfAllInOrderIsNothing) {
  // as_strided of PyTorch's newer exporter, behind its global average pools.
  const auto pooled = [](const std::vector<int64_t>& taken) {
    const auto count = static_cast<int64_t>(taken.size());
    return Draft(20, {1, 3, 8, 8})
        .constant("axes", ints({-1, -2}))
        .constant("flat", ints({-1}))
        .constant("taken", Tensor::of<int64_t>({1, count, 1, 1}, taken))
        .constant("rows", ints({1, count}))
        .node("ReduceMean", {"x", "axes"}, {"mean"})
        .node("Reshape", {"mean", "flat"}, {"all"})
        .node("Gather", {"all", "taken"}, {"strided"})
        .node("Reshape", {"strided", "rows"}, {"y"});
  };
  const Graph g = pooled({0, 1, 2}).import();
  EXPECT_EQ(op_names(g), (Names{"ReduceMean", "Identity", "Reshape"}));
  EXPECT_EQ(g.find_node("n_strided")->input(0)->name, "mean");
  // Of another order or of a part it is not.
  for (const std::vector<int64_t>& taken : {std::vector<int64_t>{0, 2, 1}, std::vector<int64_t>{0, 1}})
    EXPECT_THAT(op_names(pooled(taken).import()), Contains("Slice"));
  // Into another shape it is a Reshape.
  const Graph rows = Draft(20, {2, 6})
                         .constant("taken", Tensor::of<int64_t>({3, 2}, std::vector<int64_t>{0, 1, 2, 3, 4, 5}))
                         .node("Gather", {"x", "taken"}, {"y"}, {{"axis", int64_t{-1}}})
                         .import();
  EXPECT_EQ(op_names(rows), Names{"Reshape"});
  EXPECT_EQ(*rows.outputs()[0]->type.shape, (Shape{2, 3, 2}));
}

TEST(Forms, SoftmaxFlattensBeforeOpset13) {
  // Axis 1 with only ones behind it: the same as today's.
  const Graph same = Draft(12, {kDynamic, 10, 1, 1}).node("Softmax", {"x"}, {"y"}).import();
  EXPECT_EQ(op_names(same), Names{"Softmax"});
  EXPECT_EQ(same.find_node("n_y")->get_int("axis"), 1);
  const Graph flat = Draft(12).node("Softmax", {"x"}, {"y"}).import();
  EXPECT_EQ(op_names(flat), (Names{"Flatten", "Softmax", "Reshape"}));
  EXPECT_EQ(flat.outputs()[0]->name, "y");
  EXPECT_EQ(*flat.outputs()[0]->type.shape, (Shape{kDynamic, 3, 8, 8}));
  const Graph today = Draft(13).node("Softmax", {"x"}, {"y"}).import();
  EXPECT_EQ(op_names(today), Names{"Softmax"});
  EXPECT_EQ(today.find_node("n_y")->get_int("axis", -1), -1);
  EXPECT_THAT(Draft(12, {kDynamic, 3, kDynamic}).node("Softmax", {"x"}, {"y"}).error(),
              AllOf(HasSubstr("node 'n_y' (Softmax)"), HasSubstr("opset 13")));
}

TEST(Forms, UpsampleAndOldResize) {
  const Graph up = Draft(11)
                       .constant("s", floats({4}, {1, 1, 2, 2}))
                       .node("Upsample", {"x", "s"}, {"y"}, {{"mode", std::string("linear")}})
                       .import();
  const ir::Node* node = up.find_node("n_y");
  EXPECT_EQ(node->kind, OpKind::kResize);
  EXPECT_EQ(node->get_string("coordinate_transformation_mode"), "asymmetric");
  EXPECT_EQ(*up.outputs()[0]->type.shape, (Shape{kDynamic, 3, 16, 16}));
  const Graph tf = Draft(11)
                       .constant("none", floats({0}, {}))
                       .constant("s", floats({4}, {1, 1, 2, 2}))
                       .node("Resize", {"x", "none", "s"}, {"y"},
                             {{"coordinate_transformation_mode", std::string("tf_half_pixel_for_nn")},
                              {"nearest_mode", std::string("floor")}})
                       .import();
  EXPECT_EQ(tf.find_node("n_y")->get_string("coordinate_transformation_mode"), "half_pixel");
  EXPECT_EQ(tf.find_node("n_y")->get_string("nearest_mode"), "round_prefer_ceil");
}

TEST(Forms, OperatorsMadeOfOthers) {
  EXPECT_EQ(op_names(Draft(20).node("Gelu", {"x"}, {"y"}, {{"approximate", std::string("tanh")}}).import()),
            (Names{"Mul", "Mul", "Mul", "Add", "Mul", "Tanh", "Add", "Mul", "Mul"}));
  EXPECT_EQ(op_names(Draft(13).node("Reciprocal", {"x"}, {"y"}).import()), Names{"Div"});
  const Graph g = Draft(13)
                      .constant("i", Tensor::scalar<int64_t>(-1))
                      .node("Gather", {"x", "i"}, {"y"}, {{"axis", int64_t{1}}})
                      .import();
  EXPECT_EQ(op_names(g), (Names{"Slice", "Squeeze"}));
  EXPECT_EQ(*g.outputs()[0]->type.shape, (Shape{kDynamic, 8, 8}));
}

TEST(Forms, ConstantNodesOfEveryKind) {
  const Graph g = Draft(13)
                      .node("Constant", {}, {"a"}, {{"value", floats({}, {2})}})
                      .node("Constant", {}, {"b"}, {{"value_float", 3.0f}})
                      .node("Constant", {}, {"c"}, {{"value_floats", std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}}})
                      .node("Constant", {}, {"d"}, {{"value_int", int64_t{2}}})
                      .node("Constant", {}, {"e"}, {{"value_ints", std::vector<int64_t>{0, 192}}})
                      .node("Mul", {"x", "a"}, {"m"})
                      .node("Add", {"m", "b"}, {"n"})
                      .node("Sub", {"n", "c"}, {"o"})
                      .node("Reshape", {"o", "e"}, {"p"})
                      .node("Unsqueeze", {"p", "d"}, {"y"})
                      .import();
  EXPECT_EQ(op_names(g), (Names{"Mul", "Add", "Sub", "Reshape", "Unsqueeze"}));
  EXPECT_EQ(*g.outputs()[0]->type.shape, (Shape{kDynamic, 192, 1}));
  EXPECT_THAT(Draft(13).node("Constant", {}, {"y"}, {{"value_string", std::string("s")}}).error(),
              HasSubstr("'value_string' is not supported"));
}

TEST(Forms, UnusedTrailingOutputsAndUnorderedNodes) {
  const Graph g = Draft(13)
                      .node("Relu", {"d"}, {"y"})  // before the node that makes its input
                      .node("Dropout", {"x"}, {"d", "mask"})
                      .node("Sigmoid", {"x"}, {"nobody reads this"})
                      .import();
  EXPECT_EQ(op_names(g), (Names{"Dropout", "Relu"}));
  EXPECT_EQ(g.find_node("n_d")->outputs.size(), 1u);
}

// --- shape arithmetic

TEST(ShapeArithmetic, DynamicBatchInReshape) {
  // [batch, channels * height, -1], with the batch taken from another tensor.
  Draft d(13);
  d.constant("zero", Tensor::scalar<int64_t>(0)).constant("zeros", ints({0})).constant("minus", ints({-1}));
  d.constant("one", ints({1})).constant("three", ints({3}));
  d.node("Relu", {"x"}, {"r"}).node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"batch"});
  d.node("Unsqueeze", {"batch", "zeros"}, {"batch1"}).node("Slice", {"shape", "one", "three"}, {"ch"});
  d.node("ReduceProd", {"ch"}, {"product"}, {{"keepdims", int64_t{1}}});
  d.node("Concat", {"batch1", "product", "minus"}, {"target"}, {{"axis", int64_t{0}}});
  d.node("Reshape", {"r", "target"}, {"y"});
  Graph g = d.import();
  EXPECT_EQ(op_names(g), (Names{"Relu", "Reshape"}));
  EXPECT_EQ(int_input(g, "n_y", 1), (std::vector<int64_t>{0, 24, -1}));
  EXPECT_EQ(*g.outputs()[0]->type.shape, (Shape{kDynamic, 24, 8}));
}

TEST(ShapeArithmetic, BatchTimesSomethingBecomesMinusOne) {
  Draft d(13);
  d.constant("zero", ints({0})).constant("eight", ints({8})).constant("three", ints({3}));
  d.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"batch"});
  d.node("Mul", {"batch", "three"}, {"rows"});
  d.node("Concat", {"rows", "eight", "eight"}, {"target"}, {{"axis", int64_t{0}}});
  d.node("Reshape", {"x", "target"}, {"y"});
  EXPECT_EQ(int_input(d.import(), "n_y", 1), (std::vector<int64_t>{-1, 8, 8}));
}

TEST(ShapeArithmetic, ExpandByEqualWhere) {
  // PyTorch writes tensor.expand(batch, -1, -1, -1) with Where(Equal(target, -1), ones, target).
  Draft d(13, {kDynamic, 4});
  d.constant("zero", ints({0})).constant("minus", ints({-1})).constant("w", floats({1, 4}, {1, 2, 3, 4}));
  d.constant("two", ints({2})).constant("minus1", ints({-1}));
  d.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"batch"});
  d.node("Concat", {"batch", "minus"}, {"target"}, {{"axis", int64_t{0}}});
  d.node("ConstantOfShape", {"two"}, {"ones"}, {{"value", ints({1})}});
  d.node("Mul", {"ones", "minus1"}, {"minuses"}).node("Equal", {"target", "minuses"}, {"same"});
  d.node("Where", {"same", "ones", "target"}, {"final"});
  d.node("Expand", {"x", "final"}, {"e"}).node("Add", {"e", "w"}, {"y"});
  const Graph g = d.import();
  EXPECT_EQ(op_names(g), (Names{"Expand", "Add"}));
  EXPECT_EQ(int_input(g, "n_e", 1), (std::vector<int64_t>{1, 4}));  // 1 keeps whatever the batch is
  // The same on a constant cannot be a constant of any size.
  d.nodes.pop_back();
  d.nodes.back() = {"Expand", "n_e", {"w", "final"}, {"e"}, {}};
  d.node("Add", {"x", "e"}, {"y"});
  EXPECT_THAT(d.error(), AllOf(HasSubstr("node 'n_y' (Add)"), HasSubstr("'e'"), HasSubstr("fixed sizes")));
}

TEST(ShapeArithmetic, SliceAndResizeByDynamicSizes) {
  Draft d(13, {kDynamic, 3, kDynamic, kDynamic});
  d.constant("one", ints({1})).constant("two", ints({2})).constant("four", ints({4})).constant("zero", ints({0}));
  d.node("Shape", {"x"}, {"shape"}).node("Slice", {"shape", "two", "four"}, {"hw"});
  d.node("Slice", {"shape", "zero", "two"}, {"nc"});
  d.constant("scale", Tensor::scalar<int64_t>(2)).node("Mul", {"hw", "scale"}, {"hw2"});
  d.node("Concat", {"nc", "hw2"}, {"sizes"}, {{"axis", int64_t{0}}});
  d.node("Resize", {"x", "", "", "sizes"}, {"up"}, {{"mode", std::string("nearest")}});
  d.node("Gather", {"shape", "two"}, {"h"}).node("Sub", {"h", "one"}, {"h1"});
  d.node("Slice", {"x", "zero", "h1", "two"}, {"cut"}).node("Relu", {"cut"}, {"cut2"});
  d.node("Relu", {"up"}, {"y"});
  d.outputs.push_back({"cut2", {DataType::kFloat32, std::nullopt}});
  const Graph g = d.import();
  EXPECT_EQ(g.find_node("n_up")->input(2)->constant->to_floats(), (std::vector<float>{1, 1, 2, 2}));
  EXPECT_EQ(int_input(g, "n_cut", 2), std::vector<int64_t>{-1});
}

TEST(ShapeArithmetic, FoldsStaticModelsWithoutLanes) {
  Draft d(13, {2, 3, 8, 8});
  d.node("Shape", {"x"}, {"shape"}).node("Cast", {"shape"}, {"f"}, {{"to", int64_t{1}}});
  d.constant("half", Tensor::scalar(0.5f)).node("Mul", {"f", "half"}, {"g"}).node("Floor", {"g"}, {"h"});
  d.node("Cast", {"h"}, {"i"}, {{"to", int64_t{7}}})
      .constant("axis", ints({0}))
      .constant("last", Tensor::scalar<int64_t>(3));
  d.node("Gather", {"i", "last"}, {"four"}).node("Unsqueeze", {"four", "axis"}, {"four1"});
  d.constant("minus", ints({-1})).node("Concat", {"minus", "four1"}, {"target"}, {{"axis", int64_t{0}}});
  d.node("Reshape", {"x", "target"}, {"y"});
  EXPECT_EQ(*d.import().outputs()[0]->type.shape, (Shape{96, 4}));
}

// --- quantization

TEST(Quantization, DefaultZeroPointIsUint8) {
  const Graph g = Draft(13)
                      .constant("s", Tensor::scalar(0.5f))
                      .node("QuantizeLinear", {"x", "s"}, {"q"})
                      .node("DequantizeLinear", {"q", "s"}, {"y"})
                      .import();
  EXPECT_EQ(op_names(g), Names{"FakeQuantize"});
  const ir::Node* fq = g.find_node("n_y");
  EXPECT_EQ(fq->get_int("qmin"), 0);
  EXPECT_EQ(fq->get_int("qmax"), 255);
  EXPECT_EQ(fq->input(2)->constant->to_ints(), std::vector<int64_t>{0});
  EXPECT_EQ(g.outputs()[0]->name, "y");
}

TEST(Quantization, SharedQuantizerAndMismatchedPairs) {
  Draft d(13);
  d.constant("s", Tensor::scalar(0.5f)).constant("z", Tensor::scalar<int8_t>(0)).constant("s2", Tensor::scalar(0.25f));
  d.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  d.node("DequantizeLinear", {"q", "s", "z"}, {"a"}).node("DequantizeLinear", {"q", "s", "z"}, {"b"});
  d.node("DequantizeLinear", {"q", "s2", "z"}, {"c"});  // another scale
  d.node("Add", {"a", "b"}, {"ab"}).node("Add", {"ab", "c"}, {"y"});
  const Graph g = d.import();
  EXPECT_EQ(op_names(g), (Names{"FakeQuantize", "Mul", "FakeQuantize", "Add", "Add"}));
  EXPECT_EQ(g.find_node("n_a")->output(), g.find_node("n_ab")->input(0));
  EXPECT_EQ(g.find_node("n_ab")->input(0), g.find_node("n_ab")->input(1));
}

// A zero point that is left out is 0 of the type of the codes, on either side.
TEST(Quantization, ZeroPointsLeftOut) {
  const auto pair = [](std::vector<std::string> q, std::vector<std::string> dq, const ir::Attributes& attributes = {}) {
    Draft d(21);
    d.constant("s", Tensor::scalar(0.5f)).constant("s8", Tensor::scalar<int8_t>(0));
    d.constant("u8", Tensor::scalar<uint8_t>(0));
    q.insert(q.begin(), {"x", "s"}), dq.insert(dq.begin(), {"q", "s"});
    const Graph g = d.node("QuantizeLinear", q, {"q"}, attributes).node("DequantizeLinear", dq, {"y"}).import();
    EXPECT_EQ(op_names(g), Names{"FakeQuantize"});
    return g.find_node("n_y")->get_int("qmin");
  };
  EXPECT_EQ(pair({"s8"}, {}), -128);
  EXPECT_EQ(pair({"s8"}, {""}), -128);
  EXPECT_EQ(pair({}, {"u8"}), 0);
  EXPECT_EQ(pair({"u8"}, {}), 0);
  EXPECT_EQ(pair({}, {"s8"}, {{"output_dtype", int64_t{3}}}), -128);
  EXPECT_EQ(pair({}, {}, {{"output_dtype", int64_t{3}}}), -128);
}

// (q - 17) * 0.5 is what was quantized, (q - 3) * 0.25 what is read.
TEST(Quantization, CodesReadWithOtherParameters) {
  Draft d(13);
  d.constant("s", Tensor::scalar(0.5f)).constant("z", Tensor::scalar<uint8_t>(17));
  d.constant("s2", Tensor::scalar(0.25f)).constant("z2", Tensor::scalar<uint8_t>(3));
  d.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s2", "z2"}, {"y"});
  const Graph g = d.import();
  EXPECT_EQ(op_names(g), (Names{"FakeQuantize", "Mul", "Add", "FakeQuantize"}));
  EXPECT_EQ(g.find_node("n_y_rescale")->input(1)->constant->to_floats(), std::vector<float>{0.5f});
  EXPECT_EQ(g.find_node("n_y_shift")->input(1)->constant->to_floats(), std::vector<float>{3.5f});
  EXPECT_EQ(g.find_node("n_y")->input(2)->constant->to_ints(), std::vector<int64_t>{3});
}

TEST(Quantization, ConstantsBecomeFloat) {
  Draft d(13, {kDynamic, 2});
  d.constant("w", Tensor::of<int8_t>({3, 2}, std::vector<int8_t>{1, -127, 3, 4, 5, -128}));
  d.constant("s", floats({3}, {0.5f, 0.25f, 2})).constant("z", Tensor::of<int8_t>({3}, std::vector<int8_t>{0, 0, 0}));
  d.constant("b", Tensor::of<int32_t>({3}, std::vector<int32_t>{100, -7, 1 << 20}))
      .constant("bs", floats({3}, {0.1f, 0.2f, 0.3f}));
  d.node("DequantizeLinear", {"w", "s", "z"}, {"wf"}, {{"axis", int64_t{0}}});
  d.node("DequantizeLinear", {"b", "bs"}, {"bf"}, {{"axis", int64_t{0}}});
  d.node("Gemm", {"x", "wf", "bf"}, {"y"}, {{"transB", int64_t{1}}});
  const Graph g = d.import();
  EXPECT_EQ(op_names(g), (Names{"FakeQuantize", "Gemm"}));
  EXPECT_EQ(g.find_value("w")->constant->to_floats(), (std::vector<float>{0.5f, -63.5f, 0.75f, 1, 10, -256}));
  EXPECT_EQ(g.find_node("n_wf")->get_int("qmin"), -128);
  EXPECT_EQ(g.find_value("b")->constant->to_floats(), (std::vector<float>{100 * 0.1f, -7 * 0.2f, (1 << 20) * 0.3f}));
}

TEST(Quantization, RefusesScalesThatAreNotPositive) {
  for (const float scale :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_THAT(Draft(13)
                    .constant("s", Tensor::scalar(scale))
                    .node("QuantizeLinear", {"x", "s"}, {"q"})
                    .node("DequantizeLinear", {"q", "s"}, {"y"})
                    .error(),
                AllOf(HasSubstr("n_y"), HasSubstr("positive")));
}

TEST(Quantization, DamagedMetadataIsRefused) {
  Draft d(13);
  d.constant("s", Tensor::scalar(0.5f))
      .node("QuantizeLinear", {"x", "s"}, {"q"})
      .node("DequantizeLinear", {"q", "s"}, {"y"});
  for (const char* line :
       {"nonsense", "0 255 sleeping n_y", "5 1 frozen n_y", "-128 127 frozen n_y", "0 999 frozen n_y"}) {
    d.metadata["octet.fake_quantize"] = line;
    EXPECT_THAT(d.error(), HasSubstr("octet.fake_quantize")) << line;
  }
  d.metadata["octet.fake_quantize"] = "0 100 learned n_y";
  EXPECT_EQ(d.import().find_node("n_y")->get_int("qmax"), 100);
}

}  // namespace
}  // namespace octet::onnx

// Files of which a part becomes a program behind the graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dense/code_products.h"
#include "draft_model.h"
#include "onnx/export.h"
#include "run_program.h"

namespace octet::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> operations(const ir::Graph& graph) {
  std::vector<std::string> out;
  for (const dense::Operation& operation : graph.program->operations) out.push_back(operation.op);
  return out;
}

// Places and values of what is positive of x * 2.
Draft positive() {
  Draft draft(17, {4});
  draft.constant("two", floats({}, {2})).constant("zero", floats({}, {0})).constant("first", ints({0}));
  draft.node("Mul", {"x", "two"}, {"doubled"})
      .node("Greater", {"doubled", "zero"}, {"good"})
      .node("NonZero", {"good"}, {"places"})
      .node("Squeeze", {"places", "first"}, {"list"})
      .node("Gather", {"doubled", "list"}, {"y"})
      .node("Identity", {"doubled"}, {"all"});
  draft.outputs.push_back({"list", {ir::DataType::kInt64, std::nullopt}});
  draft.outputs.push_back({"all", {ir::DataType::kFloat32, std::nullopt}});
  return draft;
}

TEST(Program, BeginsWhereSizesComeUp) {
  const ir::Graph graph = positive().import();
  ASSERT_TRUE(graph.program);
  EXPECT_THAT(op_names(graph), ElementsAre("Mul", "Identity"));
  EXPECT_THAT(operations(graph), ElementsAre("Greater", "NonZero", "Squeeze", "Gather"));
  const std::vector<dense::Tensor> found = run_program(graph, floats({4}, {-1, 2, 0, 3}));
  EXPECT_THAT(found.at(0).values<float>(), ElementsAre(4, 6));
  EXPECT_THAT(found.at(1).values<int64_t>(), ElementsAre(1, 3));
  EXPECT_THAT(found.at(2).values<float>(), ElementsAre(-2, 4, 0, 6));
}

TEST(Program, ComesBackFromTheWrittenFile) {
  const ir::Graph graph = positive().import();
  const ir::Graph again = import_bytes(export_bytes(graph), {});
  ASSERT_TRUE(again.program);
  EXPECT_EQ(operations(again), operations(graph));
  EXPECT_EQ(op_names(again), op_names(graph));
  EXPECT_THAT(run_program(again, floats({4}, {-1, 2, 0, 3})).at(1).values<int64_t>(), ElementsAre(1, 3));
  EXPECT_THAT(graph.clone().program, graph.program);
}

// Rows that are positive somewhere, times weights of codes; the weights of the second product are its floats' codes.
Draft quantized_rows() {
  Draft draft(17, {3, 2});
  draft.constant("zero", floats({}, {0})).constant("first", ints({0}));
  draft.constant("scale", floats({}, {0.5f}))
      .constant("zero_point", ir::Tensor::of<int8_t>({}, std::vector<int8_t>{0}));
  draft.constant("w", ir::Tensor::of<int8_t>({2, 2}, std::vector<int8_t>{1, 2, 3, -4}));
  draft.constant("w_scale", floats({2}, {0.5f, 2}));
  draft.constant("w_zero", ir::Tensor::of<int8_t>({2}, std::vector<int8_t>{0, 0}));
  draft.constant("b", ir::Tensor::of<int32_t>({2}, std::vector<int32_t>{4, 8}))
      .constant("b_scale", floats({2}, {0.25f, 1}));
  draft.node("ReduceMax", {"x"}, {"largest"}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}})
      .node("Greater", {"largest", "zero"}, {"good"})
      .node("NonZero", {"good"}, {"places"})
      .node("Squeeze", {"places", "first"}, {"list"})
      .node("Gather", {"x", "list"}, {"rows"})
      .node("QuantizeLinear", {"rows", "scale", "zero_point"}, {"codes"})
      .node("DequantizeLinear", {"codes", "scale", "zero_point"}, {"quantized"})
      .node("DequantizeLinear", {"w", "w_scale", "w_zero"}, {"weights"}, {{"axis", int64_t{1}}})
      .node("DequantizeLinear", {"b", "b_scale"}, {"bias"}, {{"axis", int64_t{0}}})
      .node("Gemm", {"quantized", "weights", "bias"}, {"y"});
  return draft;
}

TEST(Program, KeepsTheCodesOfWeights) {
  const ir::Graph graph = quantized_rows().import();
  ASSERT_TRUE(graph.program);
  const auto products = dense::code_products(*graph.program);
  ASSERT_EQ(products.size(), 1u);
  EXPECT_THAT(products[0].weight_scales, ElementsAre(0.5f, 2));
  EXPECT_EQ(products[0].params, (dense::CodeParams{.scale = 0.5f, .zero_point = 0, .type = dense::Type::kInt8}));
  const ir::Tensor x = floats({3, 2}, {1, 1.2f, -1, -1, 100, 0});
  // 1 * 0.5 + 1 * 1.5 + 1, 1 * 4 - 1 * 8 + 8; 63.5 * 0.5 + 1, 63.5 * 4 + 8
  EXPECT_THAT(run_program(graph, x).at(0).values<float>(), ElementsAre(3, 4, 32.75f, 262));
  const ir::Graph again = import_bytes(export_bytes(graph), {});
  EXPECT_EQ(operations(again), operations(graph));
  EXPECT_EQ(dense::code_products(*again.program).size(), 1u);
  EXPECT_THAT(run_program(again, x).at(0).values<float>(), ElementsAre(3, 4, 32.75f, 262));
}

TEST(Program, IsWrittenInNewOpsetsOnly) {
  try {
    export_bytes(positive().import(), {.opset = 13});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("take 19, 20 or 21"));
  }
}

// Opset 20 gave the modes of GridSample other names.
TEST(Program, NamesTheModeOfGridSampleAsTheOpsetDoes) {
  for (const int opset : {16, 20, 22}) {
    Draft draft(opset, {1, 1, 3, 3});
    draft.constant("grid", floats({1, 1, 2, 2}, {0, 0, 2 / 3.0f, 0}));
    draft.node("GridSample", {"x", "grid"}, {"y"}, {{"mode", std::string(opset < 20 ? "bicubic" : "cubic")}});
    const ir::Graph graph = draft.import();
    EXPECT_EQ(std::get<std::string>(graph.program->operations.at(0).attributes.at("mode")), "cubic");
    for (const int written : {19, 20}) {
      const std::string bytes = export_bytes(graph, {.opset = written});
      EXPECT_EQ(bytes.find("bicubic") != std::string::npos, written == 19);
      EXPECT_THAT(
          run_program(import_bytes(bytes, {}), floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})).at(0).values<float>(),
          ElementsAre(5, 6));
    }
  }
  Draft wrong(20, {1, 1, 3, 3});
  wrong.constant("grid", floats({1, 1, 1, 2}, {0, 0}));
  EXPECT_THAT(wrong.node("GridSample", {"x", "grid"}, {"y"}, {{"mode", std::string("area")}}).error(),
              HasSubstr("node 'n_y' (GridSample): mode is 'area', expected linear, nearest or cubic"));
}

TEST(Program, TakesRecurrentLayersWithWhatTheyLeaveOut) {
  Draft draft(14, {2, 1, 1});
  draft.constant("w", floats({1, 1, 1}, {1})).constant("r", floats({1, 1, 1}, {10}));
  draft.constant("state", floats({1, 1, 1}, {100}));
  draft.node("Mul", {"x", "x"}, {"squared"})
      .node("RNN", {"squared", "w", "r", "", "", "state"}, {"", "y"},
            {{"hidden_size", int64_t{1}}, {"activations", std::vector<std::string>{"Affine"}}});
  const ir::Graph graph = draft.import();
  EXPECT_THAT(op_names(graph), ElementsAre("Mul"));
  EXPECT_THAT(operations(graph), ElementsAre("RNN"));
  const ir::Graph again = import_bytes(export_bytes(graph), {});
  for (const ir::Graph* g : {&graph, &again})
    EXPECT_THAT(run_program(*g, floats({2, 1, 1}, {2, 3})).at(0).values<float>(), ElementsAre((4 + 1000) * 10 + 9));
}

TEST(Program, RefusesRecurrentLayersAsTheyAreRead) {
  Draft draft(14, {2, 1, 1});
  draft.constant("w", floats({1, 1, 1}, {1})).constant("r", floats({1, 1, 1}, {10}));
  EXPECT_THAT(draft.node("RNN", {"x", "w", "r"}, {"y"}, {{"direction", std::string("sideways")}}).error(),
              HasSubstr("node 'n_y' (RNN): direction is 'sideways', expected forward, reverse or bidirectional"));
}

TEST(Program, TakesOldForms) {
  Draft draft(9, {1, 4});
  draft.node("NonZero", {"x"}, {"places"})
      .node("Unsqueeze", {"places"}, {"wide"}, {{"axes", std::vector<int64_t>{0}}})
      .node(
          "Slice", {"wide"}, {"y"},
          {{"starts", std::vector<int64_t>{1}}, {"ends", std::vector<int64_t>{2}}, {"axes", std::vector<int64_t>{1}}});
  draft.outputs[0].type.data_type = ir::DataType::kInt64;
  const std::vector<dense::Tensor> found = run_program(draft.import(), floats({1, 4}, {5, 0, 0, 7}));
  EXPECT_EQ(found.at(0).shape(), (dense::Shape{1, 1, 2}));
  EXPECT_THAT(found.at(0).values<int64_t>(), ElementsAre(0, 3));
}

TEST(Program, FoldsWhatItsConstantsGive) {
  Draft draft(17, {3});
  draft.constant("c", floats({4}, {1, 9, 3, 5})).constant("k", ints({3}));
  draft.node("TopK", {"c", "k"}, {"best", "order"}).node("Add", {"x", "best"}, {"y"});
  const ir::Graph graph = draft.import();
  EXPECT_FALSE(graph.program);
  EXPECT_EQ(graph.find_node("n_y")->input(1)->constant->to_floats(), (std::vector<float>{9, 5, 3}));
}

TEST(Program, IndicesOfTheGraphAreIntegers) {
  Draft draft(17, {1, 4});
  draft.constant("table", floats({4}, {10, 20, 30, 40}));
  draft.node("ArgMax", {"x"}, {"best"}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}})
      .node("Gather", {"table", "best"}, {"y"});
  const ir::Graph graph = draft.import();
  EXPECT_THAT(op_names(graph), ElementsAre("ArgMax"));
  EXPECT_THAT(run_program(graph, floats({1, 4}, {0, 1, 7, 2})).at(0).values<float>(), ElementsAre(30));
}

TEST(Program, SaysWhichOperatorsItLacks) {
  Draft draft(17, {1, 1, 4, 4});
  draft.constant("depth", ints({3})).constant("values", floats({2}, {0, 1}));
  draft.node("NonZero", {"x"}, {"places"}).node("OneHot", {"places", "depth", "values"}, {"y"});
  EXPECT_THAT(
      draft.error(),
      ::testing::AllOf(HasSubstr("node 'n_y' (OneHot)"),
                       HasSubstr("computed behind the plan, where 'n_places' (NonZero) begins, and OneHot is not")));
}

TEST(Program, TypesThatItLacksAreRefused) {
  Draft draft(17, {4});
  draft.node("NonZero", {"x"}, {"places"}).node("Cast", {"places"}, {"y"}, {{"to", int64_t{11}}});
  EXPECT_THAT(draft.error(), HasSubstr("node 'n_y' (Cast): the type number 11 is not supported"));
}

TEST(Program, SizesThatAreOpenWhenTheFileIsReadAreRefused) {
  Draft draft(17, {ir::kDynamic, 4});
  draft.node("Shape", {"x"}, {"shape"}).node("NonZero", {"x"}, {"places"}).node("Expand", {"places", "shape"}, {"y"});
  EXPECT_THAT(draft.error(), HasSubstr("--input-shape"));
}

}  // namespace
}  // namespace octet::onnx

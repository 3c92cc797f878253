#include "passes/quantize_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../dense/code_programs.h"
#include "base/error.h"
#include "ir/graph.h"

namespace octet::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A head of two products behind one another, and a second one beside the last.
ir::Graph two_heads() {
  testing::ProgramMaker m;
  m.input("x");
  m.constant<float>("w1", {4, 3}, {1, -2, 0.5f, 0.25f, 2, -0.5f, 0, 0, 0.125f, 0.5f, 1, 0.25f});
  m.constant<float>("w2", {2, 3}, testing::random_floats(6, 2));
  m.constant<float>("w3", {3, 5}, testing::random_floats(15, 3));
  m.add("Abs", {"x"}, {"rows"});
  m.add("Gemm", {"rows", "w1"}, {"hidden"});
  m.add("Relu", {"hidden"}, {"features"});
  m.add("Gemm", {"features", "w2"}, {"scores"}, {{"transB", int64_t{1}}});
  m.add("MatMul", {"features", "w3"}, {"boxes"});
  m.output("scores"), m.output("boxes");
  ir::Graph graph;
  graph.name = "heads";
  ir::Value* x = graph.add_input("x", {ir::DataType::kFloat32, ir::Shape{ir::kDynamic, 4}});
  graph.add_output(x);
  graph.program = std::make_shared<const dense::Program>(m.program);
  return graph;
}

std::map<std::string, quant::Range> ranges() {
  std::map<std::string, quant::Range> out;
  out["rows"].amax = 2, out["features"].amax = 1.27f;
  return out;
}

std::vector<std::string> on_codes(const ir::Graph& graph) {
  std::vector<std::string> out;
  for (const dense::CodeProduct& product : dense::code_products(*graph.program))
    out.push_back(graph.program->operations[product.form.operation].name);
  return out;
}

TEST(QuantizeProgram, GivesEachChannelItsScaleAndTheTensorOne) {
  ir::Graph graph = two_heads();
  EXPECT_THAT(quantized_program_tensors(graph, {}), ElementsAre("features", "rows"));
  EXPECT_EQ(quantize_program(graph, ranges(), {}, {}), 2);
  EXPECT_THAT(on_codes(graph), ElementsAre("hidden_node", "scores_node", "boxes_node"));
  const dense::CodeProduct first = dense::code_products(*graph.program).at(0);
  EXPECT_FLOAT_EQ(first.params.scale, 2.0f / 127);
  EXPECT_EQ(first.params.zero_point, 0);
  EXPECT_EQ(first.params.type, dense::Type::kInt8);
  EXPECT_THAT(first.weight_scales, ElementsAre(1.0f / 127, 2.0f / 127, 0.5f / 127));
  for (const auto& [value, tensor] : graph.program->constants)
    if (value == first.form.weights) {
      EXPECT_THAT(tensor.values<int8_t>(), ElementsAre(127, -127, 127, 32, 127, -127, 0, 0, 32, 64, 64, 64));
    }
}

TEST(QuantizeProgram, OneScaleForAllWeightsWhereThatIsAskedFor) {
  ir::Graph graph = two_heads();
  quantize_program(graph, ranges(), {.weights_per_tensor = true}, {});
  EXPECT_THAT(dense::code_products(*graph.program).at(0).weight_scales,
              ElementsAre(2.0f / 127, 2.0f / 127, 2.0f / 127));
}

TEST(QuantizeProgram, LeavesInFloatWhatNoImageGotTo) {
  ir::Graph graph = two_heads();
  std::map<std::string, quant::Range> some = ranges();
  some.erase("features");
  EXPECT_EQ(quantize_program(graph, some, {}, {}), 1);
  EXPECT_THAT(on_codes(graph), ElementsAre("hidden_node"));
}

TEST(QuantizeProgram, TheUsersWordCounts) {
  const auto quantized = [](const quant::PlacementOptions& options) {
    ir::Graph graph = two_heads();
    quantize_program(graph, ranges(), options, {});
    return on_codes(graph);
  };
  EXPECT_THAT(quantized({.exclude = {{.name = "scores*"}}}), ElementsAre("hidden_node", "boxes_node"));
  EXPECT_THAT(quantized({.exclude = {{.op = "Gemm"}}}), ElementsAre("boxes_node"));
  EXPECT_THAT(quantized({.only = {{.regex = "h.*"}}}), ElementsAre("hidden_node"));
  EXPECT_THAT(quantized({.quantize_last_layer = false}), ElementsAre("hidden_node"));
  EXPECT_THAT(quantized({.weight_bits = 4}), IsEmpty());
  EXPECT_THAT(quantized({.only_cases = true}), IsEmpty());
}

TEST(QuantizeProgram, NamesOfItsOperationsSelect) {
  const ir::Graph graph = two_heads();
  EXPECT_THAT(quant::select_nodes(graph, {{.name = "scores_node"}}, "exclude"), IsEmpty());
  try {
    quant::select_nodes(graph, {{.name = "no_such"}}, "exclude");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("no node of graph 'heads' is named 'no_such'"));
  }
}

}  // namespace
}  // namespace octet::passes

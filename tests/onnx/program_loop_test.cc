// Loops of files, in the program behind the graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft_model.h"
#include "onnx/export.h"
#include "run_program.h"

namespace octet::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SourceNode part(const std::string& op, std::vector<std::string> in, std::vector<std::string> out,
                ir::Attributes attributes = {}) {
  return {op, "n_" + out[0], std::move(in), std::move(out), std::move(attributes), {}};
}

// y = x + 1 + 2 + 3 of a graph's x, and the sums before; the body reads a value of the graph, and reuses a name of it.
Draft summing() {
  Draft draft(17, {2});
  draft.constant("count", ir::Tensor::scalar<int64_t>(3)).constant("one", ir::Tensor::scalar<int64_t>(1));
  draft.constant("two", floats({}, {2}));
  draft.node("Mul", {"x", "two"}, {"doubled"});
  SourceNode loop = part("Loop", {"count", "", "x"}, {"y", "rows"});
  const ir::TensorType number{ir::DataType::kInt64, ir::Shape{}}, flag{ir::DataType::kBool, ir::Shape{}},
      row{ir::DataType::kFloat32, std::nullopt};
  SourceBranch body{"body", {{"i", number}, {"going", flag}, {"before", row}}, {}, {}};
  body.nodes = {part("Add", {"i", "one"}, {"next"}), part("Cast", {"next"}, {"added"}, {{"to", int64_t{1}}}),
                part("Add", {"before", "added"}, {"after"}), part("Identity", {"going"}, {"goes_on"}),
                part("Add", {"after", "doubled"}, {"slice"})};
  body.outputs = {{"goes_on", flag}, {"after", row}, {"slice", row}};
  loop.branches.push_back(body);
  draft.nodes.push_back(loop);
  draft.outputs.push_back({"rows", {ir::DataType::kFloat32, std::nullopt}});
  return draft;
}

TEST(ProgramLoop, RunsBehindTheGraph) {
  const ir::Graph graph = summing().import();
  ASSERT_TRUE(graph.program);
  EXPECT_THAT(op_names(graph), ElementsAre("Mul"));
  const std::vector<dense::Tensor> found = run_program(graph, floats({2}, {10, 20}));
  EXPECT_THAT(found.at(0).values<float>(), ElementsAre(16, 26));
  EXPECT_EQ(found.at(1).shape(), (dense::Shape{3, 2}));
  EXPECT_THAT(found.at(1).values<float>(), ElementsAre(31, 61, 33, 63, 36, 66));
}

TEST(ProgramLoop, ComesBackFromTheWrittenFile) {
  const ir::Graph again = import_bytes(export_bytes(summing().import()), {});
  ASSERT_TRUE(again.program);
  EXPECT_EQ(dense::program_bytes(*import_bytes(export_bytes(again), {}).program), dense::program_bytes(*again.program));
  EXPECT_THAT(run_program(again, floats({2}, {10, 20})).at(1).values<float>(), ElementsAre(31, 61, 33, 63, 36, 66));
}

TEST(ProgramLoop, MayLeaveOutputsOut) {
  Draft draft = summing();
  draft.nodes.back().outputs.pop_back();
  draft.outputs.pop_back();
  EXPECT_THAT(run_program(draft.import(), floats({2}, {10, 20})).at(0).values<float>(), ElementsAre(16, 26));
}

TEST(ProgramLoop, SaysWhatIsWrongWithItsBody) {
  Draft draft = summing();
  draft.nodes.back().branches[0].inputs.pop_back();
  EXPECT_THAT(draft.error(), HasSubstr("node 'n_y' (Loop): its body has 2 inputs, expected 3"));
  draft = summing();
  draft.nodes.back().branches[0].outputs.resize(2);
  EXPECT_THAT(draft.error(), HasSubstr("its body has 2 outputs, expected 3 or more"));
  draft = summing();
  draft.nodes.back().branches.clear();
  EXPECT_THAT(draft.error(), HasSubstr("has no graph 'body'"));
  draft = summing();
  draft.nodes.back().branches[0].nodes[2].inputs[0] = "unknown";
  EXPECT_THAT(draft.error(), HasSubstr("'unknown'"));
}

}  // namespace
}  // namespace octet::onnx

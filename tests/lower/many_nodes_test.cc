// Time from a file to its plan grows with the number of nodes, outputs of a node and uses of a value, not with their
// square: hostile files, and unrolled networks, have tens of thousands.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "ir/graph.h"
#include "lower/lower.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "passes/pipelines.h"
#include "support/sanitized.h"

namespace octet::testing {
namespace {

using ir::Graph;
using ir::OpKind;
using ir::Value;

Value* image(Graph& graph, ir::Shape shape) {
  return graph.add_input("x", {ir::DataType::kFloat32, std::move(shape)});
}

Graph chain(int count) {
  Graph graph;
  Value* v = image(graph, {1, 3, 4, 4});
  for (int i = 0; i < count; ++i) v = graph.add(OpKind::kRelu, "", {v});
  graph.add_output(v);
  return graph;
}

Graph fan_out(int count) {
  Graph graph;
  Value* x = image(graph, {1, 3, 4, 4});
  std::vector<Value*> branches;
  for (int i = 0; i < count; ++i) branches.push_back(graph.add(OpKind::kRelu, "", {x}));
  Value* sum = branches[0];
  for (int i = 1; i < count; ++i) sum = graph.add(OpKind::kAdd, "", {sum, branches[static_cast<size_t>(i)]});
  graph.add_output(sum);
  return graph;
}

Graph concat(int count) {
  Graph graph;
  Value* x = image(graph, {1, 1, 4, 4});
  graph.add_output(
      graph.add(OpKind::kConcat, "y", std::vector<Value*>(static_cast<size_t>(count), x), {{"axis", int64_t{1}}}));
  return graph;
}

Graph outputs(int count) {
  Graph graph;
  Value* x = image(graph, {1, 3, 4, 4});
  for (int i = 0; i < count; ++i) graph.add_output(graph.add(OpKind::kRelu, "", {x}));
  return graph;
}

struct Shape {
  const char* name;
  Graph (*make)(int count);
};

class ManyNodes : public ::testing::TestWithParam<Shape> {};

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// From a file's bytes to the plan.
double seconds_to_plan(const Graph& source) {
  const std::string bytes = onnx::export_bytes(source, {});
  const double start = cpu_seconds();
  Graph graph = onnx::import_bytes(bytes, {});
  passes::run_pipeline(graph, passes::preparation_passes(/*keep_dropout=*/false));
  lower::lower(graph, {.batch = 1});
  return cpu_seconds() - start;
}

TEST_P(ManyNodes, TakeTimeInProportion) {
  // Half a second to two on a machine of 2025. By their square it was more than a minute for most of these. How the
  // time grows says less than its amount: large graphs leave the caches, and then it depends on what else the machine
  // does.
  constexpr int kNodes = testing::kSanitized ? 4000 : 20000;
  EXPECT_LT(seconds_to_plan(GetParam().make(kNodes)), 15);
}

INSTANTIATE_TEST_SUITE_P(Networks, ManyNodes,
                         ::testing::Values(Shape{"chain", chain}, Shape{"fan_out", fan_out}, Shape{"concat", concat},
                                           Shape{"outputs", outputs}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace octet::testing

// Time from a file to its plan grows with the number of nodes, outputs of a node and uses of a value, not with their
// square: hostile files, and unrolled networks, have tens of thousands.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>

#include "ir/graph.h"
#include "lower/lower.h"
#include "onnx/export.h"
#include "onnx/import.h"
#include "passes/pipelines.h"

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
  graph.add_output(graph.add(OpKind::kConcat, "y", std::vector<Value*>(static_cast<size_t>(count), x),
                             {{"axis", int64_t{1}}}));
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

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The least of a few tries, from a file's bytes to the plan.
double seconds_to_plan(const Graph& source, int tries) {
  const std::string bytes = onnx::export_bytes(source, {});
  double least = 1e30;
  for (int i = 0; i < tries; ++i) {
    const double start = cpu_seconds();
    Graph graph = onnx::import_bytes(bytes, {});
    passes::run_pipeline(graph, passes::preparation_passes(/*keep_dropout=*/false));
    lower::lower(graph, {.batch = 1});
    least = std::min(least, cpu_seconds() - start);
  }
  return least;
}

TEST_P(ManyNodes, TakeTimeInProportion) {
  // Sixteen times the nodes: 16 times as long if in proportion, 256 times if by their square.
  const double few = seconds_to_plan(GetParam().make(1000), 5), many = seconds_to_plan(GetParam().make(16000), 1);
  EXPECT_LT(many, 64 * few) << few << " s, then " << many << " s";
}

INSTANTIATE_TEST_SUITE_P(Networks, ManyNodes,
                         ::testing::Values(Shape{"chain", chain}, Shape{"fan_out", fan_out}, Shape{"concat", concat},
                                           Shape{"outputs", outputs}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace octet::testing

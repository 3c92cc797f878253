// A pass must not change what a graph computes.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/verify.h"
#include "support/evaluate_graph.h"

namespace octet::passes {

using Outputs = std::vector<std::vector<float>>;

// The graph's outputs for inputs of deterministic values between -1 and 1.
inline Outputs outputs_of(ir::Graph& graph) {
  ir::infer_shapes(graph);
  std::map<std::string, testing::Array> inputs;
  for (const ir::Value* v : graph.inputs()) {
    testing::Array& x = inputs[v->name] = {*v->type.shape, {}};
    for (int64_t i = 0; i < ir::element_count(x.shape); ++i)
      x.data.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + 0.3)));
  }
  const auto values = testing::evaluate_graph(graph, inputs);
  Outputs out;
  for (const ir::Value* v : graph.outputs()) out.push_back(values.at(v->name).data);
  return out;
}

// Largest difference over all outputs, relative to the largest magnitude there.
inline double difference(const Outputs& a, const Outputs& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].size() != b[k].size()) return std::numeric_limits<double>::infinity();
    double scale = 1e-30, diff = 0;
    for (size_t i = 0; i < a[k].size(); ++i) {
      scale = std::max(scale, std::fabs(double{a[k][i]}));
      diff = std::max(diff, std::fabs(double{a[k][i]} - double{b[k][i]}));
    }
    worst = std::max(worst, diff / scale);
  }
  return worst;
}

// How often `pass` changed the graph: not what it computes, nor the names of its outputs.
template <typename Pass>
int run_and_compare(ir::Graph& graph, Pass pass, double tolerance = 0) {
  const Outputs before = outputs_of(graph);
  std::vector<std::string> names;
  for (const ir::Value* v : graph.outputs()) names.push_back(v->name);
  const int changes = pass(graph);
  ir::infer_shapes(graph);
  ir::verify(graph);
  EXPECT_LE(difference(outputs_of(graph), before), tolerance);
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(graph.outputs()[i]->name, names[i]);
  return changes;
}

}  // namespace octet::passes

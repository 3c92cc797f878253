// One small graph for every operator, with its attributes varied, shared by the tests of the executor.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::train::testing {

struct OpCase {
  std::string name;
  ir::OpKind kind;
  ir::Shape input;
  // Adds the operator to a graph that has input `x`, and returns its result.
  std::function<ir::Value*(ir::Graph&, ir::Value* x)> build;
  bool differentiable = true;
  double low = -2, high = 2;  // range of the input's elements
};

const std::vector<OpCase>& op_cases();

// The graph of a case, types inferred, result "y".
ir::Graph case_graph(const OpCase& c);
// Deterministic values in [low, high).
ir::Tensor random_constant(const ir::Shape& shape, uint64_t seed, double low = -1, double high = 1);
at::Tensor random_tensor(const std::vector<int64_t>& shape, uint64_t seed, double low = -1, double high = 1);
std::vector<float> floats(const at::Tensor& t);

}  // namespace octet::train::testing

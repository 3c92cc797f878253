// The proof that a pruned network computes what the whole one computes without the channels that went.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::app {

struct PruneProof {
  std::string ran_by;             // "the engine in FP32 (avx512_vnni, 2 threads)"
  int64_t inputs = 0;             // how many of each network
  double largest_difference = 0;  // of all numbers of all outputs; NaN where one alone is no number
  double largest_output = 0;      // magnitude, of the masked network
  double allowed = 0;             // for the largest difference
  bool holds() const { return largest_difference <= allowed; }
};

// Dense tensors, one for each input, in the order of the graph.
using NetworkTensors = std::vector<std::vector<float>>;

// A graph of which no size is open: 1 image where the batch is, 64 for others. UserError where it does not fit.
ir::Graph with_sizes(const ir::Graph& graph);

// `count` inputs of random numbers (normal, fixed seed) for a graph with known sizes.
std::vector<NetworkTensors> random_inputs(const ir::Graph& graph, int count);

// Compares `pruned` with `masked` (passes/prune/cut.h), both with known sizes. By the engine in FP32, which sums in
// another order where there are fewer channels, so that differences up to 1e-4 of the largest output are its rounding;
// where these are larger, or the engine has no such operator, by ir::evaluate_graph, which sums in float64 and allows
// 1e-6 of it. threads 0: as many as CPUs. UserError where neither can run them.
PruneProof prove_pruned(const ir::Graph& masked, const ir::Graph& pruned, const std::vector<NetworkTensors>& inputs,
                        int threads);

}  // namespace octet::app

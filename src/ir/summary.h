// What a network costs: parameters and multiply-accumulates of every node, as `octet inspect` shows them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::ir {

struct ValueSummary {
  std::string name;
  TensorType type;
};

struct NodeSummary {
  std::string name;
  std::string kind;                  // ONNX name
  std::vector<ValueSummary> inputs;  // without constants and absent ones
  std::vector<ValueSummary> outputs;
  // Elements of weights, biases, normalization scales and offsets, and other trainable constants, each counted at the
  // first node that computes with it (through FakeQuantize, Q/DQ and Identity). Running statistics are not parameters.
  int64_t parameters = 0;
  // Multiply-accumulates of convolutions and matrix products as the field counts them (biases and everything else are
  // free); a dynamic batch counts as one image. Nothing when another dimension is dynamic or unknown.
  std::optional<int64_t> macs = 0;
};

struct GraphSummary {
  std::string name;
  int opset = 0;
  std::vector<ValueSummary> inputs, outputs;
  std::vector<NodeSummary> nodes;
  int64_t parameters = 0;
  std::optional<int64_t> macs = 0;  // nothing when that of a node is unknown
  int64_t constant_bytes = 0;       // all initializers
  int64_t operations_behind = 0;    // of the program behind the graph; its products are nodes, too
};

// Requires inferred types.
GraphSummary summarize(const Graph& graph);

// A table for a terminal: one line a node, then the totals.
std::string summary_table(const GraphSummary& summary);

}  // namespace octet::ir

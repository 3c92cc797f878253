// Adds to the biases of nodes: how bias correction (app/bias_correction.h, train/bias_correction.h) ends. A node
// without a bias gets one, named after its weights.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

// Those whose bias makes up for what quantization does: Conv, ConvTranspose and Gemm with quantized constant weights
// and a constant bias or none, in the order of the graph.
std::vector<const ir::Node*> nodes_to_correct(const ir::Graph& graph);

// By the name of a Conv, ConvTranspose or Gemm, an element for each output channel. Returns the number of nodes.
int shift_biases(ir::Graph& graph, const std::map<std::string, std::vector<double>>& shifts);

}  // namespace octet::passes

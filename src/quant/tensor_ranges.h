// The INT8 range of every activation of a network, and where it comes from: what a calibration cache is made of.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::quant {

enum class RangeOrigin {
  kQuantizer,  // a FakeQuantize of the network: calibrated or trained
  kDerived,    // follows from the operator and the range of another tensor, `how`
  kMeasured,   // on calibration images
};

struct TensorRange {
  float scale = 0;  // of int8 codes: range / 127
  RangeOrigin origin = RangeOrigin::kQuantizer;
  std::string how;  // kDerived: "that of 'conv1/Relu' (MaxPool)", "Sigmoid ends at 1"
};

using TensorRanges = std::map<std::string, TensorRange>;  // by the name of the tensor

// The range of each activation that a FakeQuantize of `graph` reads, by that tensor. Codes other than symmetric int8
// are said in its terms: the largest magnitude that they stand for, over 127. Of several quantizers, or scales, the
// largest.
std::map<const ir::Value*, TensorRange> quantizer_ranges(const ir::Graph& graph);

// The tensors that a cache for all layers has: inputs and results of nodes in float32 that are no constants. Of a graph
// without quantizers, in its order.
std::vector<const ir::Value*> activations(const ir::Graph& graph);

// Adds what follows from the ranges that are there, in a graph without quantizers, until nothing does:
//  - before operators through which codes go unchanged (Relu, MaxPool, Concat, Reshape ..., also Clip), where nobody
//    else reads the tensor: the range of what comes out, as what a narrower range cuts off is cut off behind them
//    anyway;
//  - behind them, and behind averages: that of what goes in, of several inputs the largest;
//  - of Sigmoid, HardSigmoid, Softmax, Tanh and Clip: the end of their values.
// Returns how many.
int derive_ranges(const ir::Graph& graph, TensorRanges& ranges);

// Those of activations() that have none yet.
std::vector<std::string> tensors_without_range(const ir::Graph& graph, const TensorRanges& ranges);

// The nodes that a DLA takes in INT8 with equal ranges only, and that have others: pooling (what goes in and what comes
// out) and element-wise operators (their inputs). By name, in the order of the graph.
std::vector<std::string> unequal_ranges(const ir::Graph& graph, const TensorRanges& ranges);

}  // namespace octet::quant

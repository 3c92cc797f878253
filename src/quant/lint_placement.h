// Finds where a quantized graph will not run as fused INT8 kernels, and says why: broken fusions are the usual reason
// for an INT8 network that is slower than the float one.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::quant {

enum class PlacementIssue {
  kFloatLayer,         // a weighted node without quantized input or weights
  kFloatPool,          // an average pool of a float tensor
  kSplitAdd,           // a quantizer between a convolution and the Add that could be fused into it
  kFloatResidual,      // a fused Add whose other operand is float, so that the convolution's output stays float
  kFloatIsland,        // other float nodes between quantized ones: dequantize before, quantize after
  kConcatRequantizes,  // inputs of a quantized Concat with different scales
  kQuantizedTwice,     // one tensor, several quantizers with different scales
  kPerTensorWeights,   // of a node that could have one scale per output channel
  kNotCalibrated,      // a quantizer that still observes
};
const char* placement_issue_name(PlacementIssue issue);  // "float_layer", ...

struct PlacementNote {
  PlacementIssue issue;
  std::string node;     // that it is about (the first of an island)
  std::string message;  // one sentence: what, and what would mend it
};

// Notes in the order of the nodes; none for a float graph without FakeQuantize. Also understands graphs whose
// quantizers were placed elsewhere (imported Q/DQ files): a quantizer reaches a node through nodes that commute with
// it.
std::vector<PlacementNote> lint_placement(const ir::Graph& graph);

// "float_layer  Conv 'x' runs in float: ...", one line each.
std::string lint_text(const std::vector<PlacementNote>& notes);

}  // namespace octet::quant

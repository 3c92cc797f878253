// The families of quant.rules, and what each of them asks of the placement (placement.h).
#pragma once
#include <span>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "schema/enum_names.h"

namespace octet::quant {

// Families of networks. All have the rules for weighted nodes and average pools.
//  auto          residual Adds, squeeze-and-excitation Muls and batch norms without convolution where the graph has
//  them;
//                a MaxPool joins in where its input is quantized anyway
//  resnet_v1, mobilenet   residual Adds
//  resnet_v2     residual Adds, batch norms without convolution (pre-activation), max pools
//  efficientnet  residual Adds, squeeze-and-excitation Muls
//  inception     max pools (so that sibling branches share one quantizer)
// The others are the placements of other tools, which quantize what nodes make, not what they read:
//  tao           NVIDIA TAO's QAT: the input of the network and the result of every block that TensorRT fuses
//                (convolution, batch norm, activation) and of every other node, so both operands of sums. The nodes
//                that make the outputs keep float weights and results. Relu becomes ReLU6, as TAO trains it.
//  dla           every tensor has a range: a quantizer for each but those in front of a Relu or Clip, whose range is
//                that of what comes out. One scale where a DLA wants equal ranges: what goes into and comes out of a
//                pool, the operands of an element-wise node, what a Concat joins.
//  tfmot         TensorFlow Model Optimization's default: the input and what layers give behind their ReLU, the outputs
//                of the network with them; a Concat instead of what it joins; activations are asymmetric.
enum class PlacementRule { kAuto, kResNetV1, kResNetV2, kMobileNet, kEfficientNet, kInception, kTao, kDla, kTfmot };
std::span<const schema::EnumName<PlacementRule>> enum_names(PlacementRule);

// What the chosen families ask for beyond the rules that all share.
struct Rules {
  bool residual_add = false;
  bool squeeze_excite = false;
  bool standalone_batch_norm = false;
  bool max_pool = false;
  bool shared_max_pool = false;  // where the input is quantized anyway
  bool tao = false, dla = false, tfmot = false;

  // Quantizers go where tensors are made.
  bool whole_tensors() const { return tao || dla || tfmot; }
  bool outputs() const { return dla || tfmot; }  // of the network, too
};
Rules combine(const std::vector<PlacementRule>& families);

// Whether tao, dla or tfmot, as far as `rules` have them, put a quantizer behind this activation (input of the network
// or result of a node).
bool is_quantized_tensor(const ir::Graph& graph, const ir::Value& value, const Rules& rules);

// The nodes that TAO copies as they are: those that make the outputs of the network, and where such a node computes
// without weights (an activation, a sum, a Softmax, a change of shape), those that it reads, and so on.
std::unordered_set<const ir::Node*> tao_output_nodes(const ir::Graph& graph);

}  // namespace octet::quant

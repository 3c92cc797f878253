// What several passes need to change a graph.
#pragma once
#include <vector>

#include "ir/graph.h"

namespace octet::passes {

// `to` takes over everything that `from` was, its name included, and the node that makes `from` goes.
void supersede(ir::Graph& graph, ir::Value* from, ir::Value* to);

// The node becomes the Relu of `x`.
void make_relu(ir::Graph& graph, ir::Node* node, ir::Value* x);

// A Conv, ConvTranspose or MatMul without a bias takes over the constant that `add`, its only reader, adds. A MatMul
// (of matrices) becomes a Gemm; all keep their names.
void take_bias(ir::Graph& graph, ir::Node* layer, ir::Node* add, ir::Value* bias);

// Takes `node` (one output in use) out: its readers read `replacement` instead. A graph output keeps its name: the
// replacement is renamed to it. False, and nothing is changed, when that cannot be: the replacement is itself a graph
// input, a constant or a graph output.
bool bypass(ir::Graph& graph, ir::Node* node, ir::Value* replacement);

// Per output channel: y = (y - center) * scale + shift. One element a channel.
struct ChannelAffine {
  std::vector<double> scale, center, shift;

  bool moves() const;  // and does not only scale
};

// Conv, ConvTranspose, Gemm or MatMul with constant float32 weights and, if any, a constant bias of one element a
// channel, into which an affine function of its `channels` outputs can be folded. The weights may be quantized, by
// symmetric codes. A MatMul of matrices can become a Gemm; into others goes what only scales (`moves` is false).
bool can_fold_affine(const ir::Node& node, int64_t channels, bool moves = true);
// Folds it: computed in float64, rounded once. Scales of quantized weights, of which each channel then has its own,
// grow with the weights, so that the codes stay but for their sign. Constants that other nodes use too are copied
// first. A new bias is named after the weights ("conv1.weight" -> "conv1.bias") and is trainable when asked. `what`
// names the folded node in the UserError for a result that is not finite.
void fold_affine(ir::Graph& graph, ir::Node* node, const ChannelAffine& affine, bool trainable_bias,
                 const std::string& what);

}  // namespace octet::passes

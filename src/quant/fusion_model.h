// What the rules of placement know about graphs: which nodes carry weights, what fuses into a convolution, and which
// tensors cannot be negative.
#pragma once
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph.h"

namespace octet::quant {

// Conv, ConvTranspose, Gemm or MatMul whose weights are a constant (also behind a FakeQuantize): input 1. One without
// elements holds nothing to quantize.
bool is_weighted(const ir::Node& node);
// The axis of the output channels in input 1 of a weighted node; nothing: the weights have none (a vector).
std::optional<int> weight_axis(const ir::Node& node);

// The weighted nodes with no weighted node above them (first), or below them.
std::unordered_set<const ir::Node*> outermost_weighted(const ir::Graph& graph, bool first);

// Element-wise functions that end a fused kernel: Relu, Clip with constant limits, LeakyRelu ...
bool is_activation(const ir::Node& node);
// An Add of two activations of equal shape (as far as the shapes are known).
bool is_residual_add(const ir::Node& node);
// A Mul that scales feature maps by the output of a gate: Sigmoid or HardSigmoid of something else than these maps.
// (x * Sigmoid(x), the Swish activation, is none.)
bool is_squeeze_excite_mul(const ir::Node& node);
// The Mul of x * Sigmoid(x) or x * HardSigmoid(x).
bool is_swish(const ir::Node& node);
// AveragePool, GlobalAveragePool, ReduceMean over axes behind the channel.
bool is_average_pool(const ir::Node& node);
// BatchNormalization whose input no weighted node makes for it alone, so that it cannot be folded; or the first of Sub,
// Mul, Div and Add by channel in front of an activation that are one, as tf2onnx writes it. The index of its operand.
std::optional<size_t> standalone_batch_norm(const ir::Node& node);

// The weighted node whose fused kernel makes `value`, where `value` and everything between has one consumer:
// Conv | BatchNormalization <- Conv | activation <- BatchNormalization <- Conv | activation <- Conv, and any of these
// before a Dropout. nullptr: none.
ir::Node* fused_producer(const ir::Graph& graph, const ir::Value* value);

// Whether what is below zero in a tensor is a small part of its range by the operators that make it: Swish, HardSwish,
// Mish and Gelu end at -0.4 at most, Elu at -1 (alpha <= 1), and LeakyRelu shrinks what is below zero (alpha <= 1/4);
// also moved, pooled, scaled by a gate and joined with what cannot be negative. False: not known.
bool hardly_negative(const ir::Value* value);

// Proofs that a tensor holds no negative value, remembered.
class SignAnalysis {
 public:
  bool cannot_be_negative(const ir::Value* value);

 private:
  bool prove(const ir::Value* value);
  std::unordered_map<const ir::Value*, bool> known_;
};

}  // namespace octet::quant

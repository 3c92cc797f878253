// Chains of element-wise operators over one quantised tensor: with 8-bit codes in and out they are a table of 256 bytes
// (one for each channel where a constant differs between channels), filled by the operators' own float definitions.
#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/kernels/float_ops.h"
#include "ir/graph.h"
#include "numerics/quantize.h"

namespace octet::lower {

// The function and parameters of an element-wise operator of one tensor.
struct UnaryFunction {
  kernels::UnaryOp op = kernels::UnaryOp::kIdentity;
  float alpha = 0, beta = 0;
};
// Nothing for other operators. Clip has constant bounds; UserError when they depend on an input.
std::optional<UnaryFunction> unary_function(const ir::Node& node);
// [lo, hi] of Relu or Clip.
struct Bounds {
  float lo, hi;
};
std::optional<Bounds> clamp_bounds(const ir::Node& node);
std::optional<kernels::BinaryOp> binary_function(const ir::Node& node);

class PointwiseAnalysis {
 public:
  // `is_root` tells which values are quantised.
  template <typename IsRoot>
  PointwiseAnalysis(const ir::Graph& graph, IsRoot is_root) {
    for (const auto& node : graph.nodes()) visit(*node, is_root);
  }

  struct Source {
    const ir::Value* root = nullptr;
    bool per_channel = false;
    int nodes = 0;
  };
  // The quantised tensor that `value` is an element-wise function of.
  std::optional<Source> source(const ir::Value* value) const;
  // The function at x in a channel.
  float evaluate(const ir::Value* value, const ir::Value* root, float x, int64_t channel) const;
  // Stored codes (u8) of every stored code of the root; 256 entries, or 256 for each channel.
  std::vector<uint8_t> table(const ir::Value* value, const Source& source, const numerics::QuantParams& in,
                             const numerics::QuantParams& out) const;

 private:
  template <typename IsRoot>
  void visit(const ir::Node& node, IsRoot is_root) {
    if (!element_wise(node) || node.outputs.size() != 1 || !node.output()->type.shape) return;
    Source source;
    for (const ir::Value* in : node.inputs) {
      if (in == nullptr || constant_operand(node, in)) {
        if (in != nullptr && in->constant->size() > 1) source.per_channel = true;
        continue;
      }
      Source from{.root = in};
      if (!is_root(in)) {
        const auto found = sources_.find(in);
        if (found == sources_.end()) return;
        from = found->second;
      }
      if (source.root != nullptr && source.root != from.root) return;
      source.root = from.root;
      source.per_channel = source.per_channel || from.per_channel;
      source.nodes += from.nodes;
    }
    if (source.root == nullptr || *node.output()->type.shape != *source.root->type.shape) return;
    if (++source.nodes <= kMaxNodes) sources_[node.output()] = source;
  }
  static constexpr int kMaxNodes = 32;
  static bool element_wise(const ir::Node& node);
  // A constant with one element, or one for each channel of the node's output.
  static bool constant_operand(const ir::Node& node, const ir::Value* value);

  std::unordered_map<const ir::Value*, Source> sources_;
};

}  // namespace octet::lower

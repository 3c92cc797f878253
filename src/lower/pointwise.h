// Chains of element-wise operators over one quantized tensor, quantizers included: with 8-bit codes in and out they are
// a table of 256 bytes (one for each channel where a constant differs between channels), filled by what the operators'
// own steps would compute, with the exponentials of the C library (kernels::apply_unary).
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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

// FakeQuantize([clamps] a op b) of two quantized tensors with op Add, Sub or Mul: one rounding of a sum or product of
// codes (docs/numerics.md), wherever it is computed.
struct QuantizedSum {
  const ir::Node* op = nullptr;
  const ir::Value *a = nullptr, *b = nullptr;
  numerics::QuantParams a_params, b_params, out;
  Bounds bounds{};
  std::string clamps;  // "+Relu"

  // Factors of the codes of a and b (Sub: the second is negative), or of their product.
  float a_multiplier() const { return a_params.scale / out.scale; }
  float b_multiplier() const;
  float product_multiplier() const;
  // The graph's code of the result of two codes of the graph.
  int32_t apply(int32_t a_code, int32_t b_code) const;
};

class PointwiseAnalysis {
 public:
  // `params` tells how a value is quantized, or nothing; `is_root`, or nothing, which others sources may end in. They
  // and `graph` outlive this.
  using Params = std::function<const numerics::QuantParams*(const ir::Value*)>;
  using IsRoot = std::function<bool(const ir::Value*)>;
  explicit PointwiseAnalysis(const ir::Graph& graph, Params params, IsRoot is_root = nullptr);

  struct Source {
    const ir::Value* root = nullptr;
    bool per_channel = false;
    int nodes = 0;
  };
  // The quantized tensors (and those of is_root) that `value` is an element-wise function of: the nearest first, each a
  // function of the next. Quantizers between them are part of the function.
  std::vector<Source> sources(const ir::Value* value) const;
  // Stored codes (u8) of `value`, which is quantized, for every stored code of the root; 256 entries, or 256 for each
  // channel.
  std::vector<uint8_t> table(const ir::Value* value, const Source& source) const;
  // The operators of the function, in order: "Sigmoid+Mul".
  std::string operators(const ir::Value* value, const ir::Value* root) const;
  // The values from the root (excluded) to `value`, producers first.
  std::vector<const ir::Value*> between(const ir::Value* value, const ir::Value* root) const;
  std::optional<QuantizedSum> quantized_sum(const ir::Node& quantizer) const;

  const numerics::QuantParams* params(const ir::Value* value) const { return params_(value); }

 private:
  void visit(const ir::Node& node);
  std::vector<Source> chain(const ir::Value* value) const;  // sources, and `value` itself where it is quantized

  const ir::Graph& graph_;
  Params params_;
  IsRoot is_root_;
  std::unordered_map<const ir::Value*, Source> nearest_;
};

}  // namespace octet::lower

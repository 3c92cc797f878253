// Steps on codes.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lower/plan_builder.h"
#include "lower/step_function.h"
#include "lower/weighted.h"
#include "numerics/quantize.h"

namespace octet::lower {

// What an INT8 convolution does with its accumulators.
struct Int8Chain {
  const ir::Node* end = nullptr;  // the node that the step is named after
  const ir::Value* out = nullptr;
  std::string op;
  Weighted weighted;
  std::shared_ptr<const QuantizedWeights> weights;  // shared: a job is copied
  numerics::QuantParams input;
  std::optional<numerics::QuantParams> output;  // nothing: floats
  Bounds bounds{};
  const ir::Value* residual = nullptr;
  numerics::QuantParams residual_params;        // with a quantized output
  std::optional<numerics::QuantParams> middle;  // the convolution is quantized before the residual is added
  Bounds middle_bounds{};
  // The codes go through a table of 256 bytes and are then codes of `table_output`.
  std::vector<uint8_t> table;
  numerics::QuantParams table_output;
  // Or `output` are the steps of this function, whose codes are those of `table_output`.
  std::optional<StepFunction> function;
  // Of the codes that are written.
  const numerics::QuantParams& written() const { return table.empty() && !function ? *output : table_output; }
};
std::vector<int8_t> pack_weights(const Int8Chain& chain, bool depthwise);
// Accumulators to the units of the output (or of the codes in the middle), padded.
std::vector<float> multipliers(const Int8Chain& chain);
// The constant `key` of a step, with its numbers.
void write_function(engine::Step& step, const std::string& key, const StepFunction& function,
                    const engine::ConstantRef& table);
void emit_int8_chain(PlanBuilder& builder, const Int8Chain& chain);

// x * gate(mean(x)): squeeze-and-excite. The layers are 1x1 convolutions over one pixel; the last makes the gate.
struct SqueezeExcite {
  const ir::Node* end = nullptr;   // the quantizer of the product
  const ir::Node* name = nullptr;  // what the step is named after
  std::string op;
  const ir::Value* x = nullptr;
  const ir::Node* mean_op = nullptr;
  numerics::QuantParams mean;
  Bounds mean_bounds{};
  std::vector<Int8Chain> layers;
  QuantizedSum product;  // of x and the gate
};
void emit_squeeze_excite(PlanBuilder& builder, const SqueezeExcite& block);

// The codes that [bounds] clamps to: quantizing is monotone, so clamping before it and after it is the same.
struct CodeLimits {
  int32_t lo, hi;  // stored codes
};
CodeLimits code_limits(const Bounds& bounds, const numerics::QuantParams& params);

// Nodes that hand codes through (Lowering::carries_codes): pools, moves, nearest resize, Relu. `params` are those of
// inputs and outputs.
void emit_carrier(PlanBuilder& builder, const ir::Node& node, const numerics::QuantParams& params);

}  // namespace octet::lower

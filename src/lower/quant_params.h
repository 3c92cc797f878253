// FakeQuantize nodes and constants as the compiler reads them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/query.h"
#include "numerics/quantize.h"

namespace octet::lower {

// A stored byte is the graph's code plus this: 128 where the graph's codes are signed.
int32_t code_offset(const numerics::QuantParams& params);

// Parameters of a per-tensor FakeQuantize. UserError naming the node: it still observes, its scale is not constant or
// not positive, it has one scale per channel, its codes are not 8-bit.
numerics::QuantParams quantizer_params(const ir::Node& node);

// The numbers of a constant, or of a FakeQuantize of a constant. Nothing when the value depends on an input, or was
// quantized more than once.
std::optional<std::vector<float>> constant_floats(const ir::Value* value);
// Has these. (Unlike ir::constant_behind, which looks through any number of quantizers.)
bool is_constant(const ir::Value* value);
// The same, for weights: UserError naming `node` when one is NaN or infinite.
std::vector<float> finite_weights(const ir::Node& node, const ir::Value* value);

// Quantized weights: value = FakeQuantize(constant) with scales per output channel or one for all.
struct WeightCodes {
  std::vector<int8_t> codes;  // minus the zero point, in the order of the constant
  std::vector<float> scales;  // one for each output channel
  std::string problem;        // why there are none; then the rest is empty
};
WeightCodes weight_codes(const ir::Node& node, const ir::Value* value, int64_t channel_axis);

}  // namespace octet::lower

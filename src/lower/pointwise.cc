#include "lower/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;
using kernels::BinaryOp;
using kernels::UnaryOp;

float apply_binary(BinaryOp op, float a, float b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMin:
      return std::min(a, b);
    case BinaryOp::kMax:
      return std::max(a, b);
    case BinaryOp::kPow:
      return std::pow(a, b);
    case BinaryOp::kPRelu:
      return a < 0 ? a * b : a;
  }
  return a;
}

float bound(const Node& node, size_t input, float fallback) {
  if (!node.has_input(input)) return fallback;
  const auto values = constant_floats(node.input(input));
  require(values && values->size() == 1, "Clip '", node.name, "': its bounds are not constant numbers");
  return (*values)[0];
}

float channel_value(const Value* constant, int64_t channel) {
  const size_t at = constant->constant->size() == 1 ? 0 : static_cast<size_t>(channel);
  if (constant->constant->data_type() == ir::DataType::kFloat32) return constant->constant->values<float>()[at];
  return constant->constant->to_floats()[at];
}

}  // namespace

std::optional<Bounds> clamp_bounds(const Node& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (node.kind == OpKind::kRelu) return Bounds{0, kInfinity};
  if (node.kind != OpKind::kClip) return std::nullopt;
  return Bounds{bound(node, 1, -kInfinity), bound(node, 2, kInfinity)};
}

std::optional<UnaryFunction> unary_function(const Node& node) {
  switch (node.kind) {
    case OpKind::kRelu:
      return UnaryFunction{UnaryOp::kRelu};
    case OpKind::kClip: {
      const Bounds b = *clamp_bounds(node);
      return UnaryFunction{UnaryOp::kClip, b.lo, b.hi};
    }
    case OpKind::kLeakyRelu:
      return UnaryFunction{UnaryOp::kLeakyRelu, node.get_float("alpha")};
    case OpKind::kElu:
      return UnaryFunction{UnaryOp::kElu, node.get_float("alpha")};
    case OpKind::kSigmoid:
      return UnaryFunction{UnaryOp::kSigmoid};
    case OpKind::kHardSigmoid:
      return UnaryFunction{UnaryOp::kHardSigmoid, node.get_float("alpha"), node.get_float("beta")};
    case OpKind::kHardSwish:
      return UnaryFunction{UnaryOp::kHardSwish};
    case OpKind::kTanh:
      return UnaryFunction{UnaryOp::kTanh};
    case OpKind::kSoftplus:
      return UnaryFunction{UnaryOp::kSoftplus};
    case OpKind::kExp:
      return UnaryFunction{UnaryOp::kExp};
    case OpKind::kLog:
      return UnaryFunction{UnaryOp::kLog};
    case OpKind::kSqrt:
      return UnaryFunction{UnaryOp::kSqrt};
    case OpKind::kNeg:
      return UnaryFunction{UnaryOp::kNeg};
    case OpKind::kAbs:
      return UnaryFunction{UnaryOp::kAbs};
    case OpKind::kErf:
      return UnaryFunction{UnaryOp::kErf};
    case OpKind::kFloor:
      return UnaryFunction{UnaryOp::kFloor};
    default:
      return std::nullopt;
  }
}

std::optional<BinaryOp> binary_function(const Node& node) {
  switch (node.kind) {
    case OpKind::kAdd:
      return BinaryOp::kAdd;
    case OpKind::kSub:
      return BinaryOp::kSub;
    case OpKind::kMul:
      return BinaryOp::kMul;
    case OpKind::kDiv:
      return BinaryOp::kDiv;
    case OpKind::kPow:
      return BinaryOp::kPow;
    case OpKind::kMin:
      return BinaryOp::kMin;
    case OpKind::kMax:
      return BinaryOp::kMax;
    case OpKind::kPRelu:
      return BinaryOp::kPRelu;
    default:
      return std::nullopt;
  }
}

bool PointwiseAnalysis::element_wise(const Node& node) {
  if (node.kind == OpKind::kClip) {
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (node.has_input(i) && !node.input(i)->is_constant()) return false;
    return true;
  }
  return unary_function(node).has_value() || binary_function(node).has_value() ||
         node.kind == OpKind::kBatchNormalization;
}

bool PointwiseAnalysis::constant_operand(const Node& node, const Value* value) {
  if (!value->is_constant()) return false;
  const int64_t count = value->constant->size();
  if (count == 1) return true;
  const ir::Shape& out = *node.output()->type.shape;
  if (out.size() != 2 && out.size() != 4) return false;
  if (count != out[1]) return false;
  if (node.kind == OpKind::kBatchNormalization) return true;
  // The constant's only long dimension must be the channel's.
  const ir::Shape& shape = value->constant->shape();
  const size_t behind = out.size() - 2;  // dimensions behind the channel
  return shape.size() > behind && shape.size() <= out.size() && shape[shape.size() - 1 - behind] == count;
}

std::optional<PointwiseAnalysis::Source> PointwiseAnalysis::source(const Value* value) const {
  const auto found = sources_.find(value);
  if (found == sources_.end()) return std::nullopt;
  return found->second;
}

float PointwiseAnalysis::evaluate(const Value* value, const Value* root, float x, int64_t channel) const {
  if (value == root) return x;
  if (value->is_constant()) return channel_value(value, channel);
  const Node& node = *value->producer;
  if (const auto unary = unary_function(node))
    return kernels::apply_unary(unary->op, evaluate(node.input(0), root, x, channel), unary->alpha, unary->beta);
  if (node.kind == OpKind::kBatchNormalization) {
    // The same two roundings as the engine's float step: scale and shift are computed in double.
    const double scale =
        channel_value(node.input(1), channel) /
        std::sqrt(static_cast<double>(channel_value(node.input(4), channel)) + node.get_float("epsilon"));
    const double shift = channel_value(node.input(2), channel) - channel_value(node.input(3), channel) * scale;
    return evaluate(node.input(0), root, x, channel) * static_cast<float>(scale) + static_cast<float>(shift);
  }
  const BinaryOp op = *binary_function(node);
  float result = evaluate(node.input(0), root, x, channel);
  for (size_t i = 1; i < node.inputs.size(); ++i)
    result = apply_binary(op, result, evaluate(node.input(i), root, x, channel));
  return result;
}

std::vector<uint8_t> PointwiseAnalysis::table(const Value* value, const Source& source, const numerics::QuantParams& in,
                                              const numerics::QuantParams& out) const {
  const int64_t channels = source.per_channel ? (*source.root->type.shape)[1] : 1;
  std::vector<uint8_t> entries(static_cast<size_t>(channels) * 256);
  for (int64_t c = 0; c < channels; ++c)
    for (int stored = 0; stored < 256; ++stored) {
      // Bytes that no code is stored as take the nearest code, so that every entry is defined.
      const int32_t code = std::clamp(stored - code_offset(in), in.qmin, in.qmax);
      const float x = numerics::dequantize(code, in);
      const float y = value == source.root ? x : evaluate(value, source.root, x, c);
      entries[static_cast<size_t>(c) * 256 + stored] =
          static_cast<uint8_t>(numerics::quantize(y, out) + code_offset(out));
    }
  return entries;
}

}  // namespace octet::lower

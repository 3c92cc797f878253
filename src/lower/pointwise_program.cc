#include "lower/pointwise_program.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "lower/quant_params.h"

namespace octet::lower {
namespace {

using ir::Node;
using ir::OpKind;
using ir::Value;
using kernels::BinaryOp;

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

}  // namespace

PointwiseProgram::PointwiseProgram(const PointwiseAnalysis& analysis, const Value* value, const Value* root,
                                   int64_t channel) {
  std::unordered_map<const Value*, int> slots{{root, 0}};
  const auto constant = [&](const Value* in) {
    const size_t at = in->constant->size() == 1 ? 0 : static_cast<size_t>(channel);
    if (in->constant->data_type() == ir::DataType::kFloat32) return in->constant->values<float>()[at];
    return in->constant->to_floats()[at];
  };
  const auto operand = [&](const Value* in) {
    return in->is_constant() ? Operand{.constant = constant(in)} : Operand{.slot = slots.at(in)};
  };
  for (const Value* v : analysis.between(value, root)) {
    const Node& node = *v->producer;
    Instruction next{.params = analysis.params(v)};
    if (is_quantizer(&node)) {
      next.what = Instruction::What::kQuantize;
      next.operands = {operand(node.input(0))};
      const auto sum = analysis.quantized_sum(node);
      if (sum && slots.contains(sum->a) && slots.contains(sum->b)) {
        next.what = Instruction::What::kSum;
        next.sum = *sum;
        next.operands = {operand(sum->a), operand(sum->b)};
      }
    } else if (const auto unary = unary_function(node)) {
      next.unary = *unary;
      next.operands = {operand(node.input(0))};
    } else if (node.kind == OpKind::kBatchNormalization) {
      // The same two roundings as the engine's float step: scale and shift are computed in double.
      next.what = Instruction::What::kScaleShift;
      const auto parameter = [&](size_t i) { return constant(node.input(i)); };
      const double scale = parameter(1) / std::sqrt(static_cast<double>(parameter(4)) + node.get_float("epsilon"));
      next.scale = static_cast<float>(scale);
      next.shift = static_cast<float>(parameter(2) - parameter(3) * scale);
      next.operands = {operand(node.input(0))};
    } else {
      next.what = Instruction::What::kBinary;
      next.binary = *binary_function(node);
      for (const Value* in : node.inputs) next.operands.push_back(operand(in));
    }
    instructions_.push_back(std::move(next));
    slots[v] = static_cast<int>(instructions_.size());
  }
  numbers_.resize(instructions_.size() + 1);
}

float PointwiseProgram::real(const Instruction& next) const {
  const auto number = [&](const Operand& o) { return o.slot < 0 ? o.constant : at(o).real; };
  float result = number(next.operands[0]);
  switch (next.what) {
    case Instruction::What::kUnary:
      return kernels::apply_unary(next.unary.op, result, next.unary.alpha, next.unary.beta);
    case Instruction::What::kScaleShift:
      return result * next.scale + next.shift;
    default:
      for (size_t i = 1; i < next.operands.size(); ++i)
        result = apply_binary(next.binary, result, number(next.operands[i]));
      return result;
  }
}

int32_t PointwiseProgram::code_of(float real_of_root, int32_t code) {
  numbers_[0] = {real_of_root, code};
  for (size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& next = instructions_[i];
    Number& n = numbers_[i + 1];
    if (next.what == Instruction::What::kSum) {
      n.code = next.sum.apply(at(next.operands[0]).code, at(next.operands[1]).code);
      n.real = numerics::dequantize(n.code, *next.params);
    } else if (next.what == Instruction::What::kQuantize) {
      n.code = numerics::quantize(real(next), *next.params);
      n.real = numerics::dequantize(n.code, *next.params);
    } else {
      n.real = real(next);
      if (next.params) n.code = numerics::quantize(n.real, *next.params);
    }
  }
  return numbers_.back().code;
}

}  // namespace octet::lower

// The function of one quantized or real tensor that PointwiseAnalysis found, ready to be computed number by number.
#pragma once
#include <cstdint>
#include <vector>

#include "lower/pointwise.h"

namespace octet::lower {

class PointwiseProgram {
 public:
  // `value` from `root`, in this channel. Both are of `analysis`, which outlives this.
  PointwiseProgram(const PointwiseAnalysis& analysis, const ir::Value* value, const ir::Value* root, int64_t channel);

  // The graph's code of `value`, which is quantized, where the root has this number and, if it is quantized, code.
  int32_t code_of(float real, int32_t code = 0);

 private:
  struct Number {
    float real = 0;
    int32_t code = 0;  // of quantized values
  };
  struct Operand {
    int slot = -1;  // or a constant
    float constant = 0;
  };
  struct Instruction {
    enum class What { kUnary, kBinary, kScaleShift, kQuantize, kSum } what = What::kUnary;
    std::vector<Operand> operands;
    UnaryFunction unary;
    kernels::BinaryOp binary{};
    float scale = 1, shift = 0;
    const numerics::QuantParams* params = nullptr;  // of the result, if it is quantized
    QuantizedSum sum;
  };
  float real(const Instruction& instruction) const;
  const Number& at(const Operand& operand) const { return numbers_[static_cast<size_t>(operand.slot)]; }

  std::vector<Instruction> instructions_;
  std::vector<Number> numbers_;  // of the root, then of each instruction
};

}  // namespace octet::lower

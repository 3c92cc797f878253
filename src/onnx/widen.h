// 16-bit floats of a file are read as float32: Octet trains, calibrates and runs no others. Widening is exact, so a
// network that computed in float16 or bfloat16 gives the same numbers with fewer roundings.
#pragma once
#include <string>

#include "onnx/upgrade.h"

namespace octet::onnx {

bool is_half(ir::DataType type);
// float32 instead of float16 and bfloat16; others as they are.
ir::DataType widened(ir::DataType type);
ir::Tensor widened(ir::Tensor tensor);

// Collects where a network itself computes in 16 bits, and says so once.
class Widener {
 public:
  // Attributes that name a 16-bit type name float32 afterwards. `computed`: the node's inputs are no constants.
  void widen(SourceNode& node, bool computed);
  // An input or a scale is of 16 bits; `where` names it.
  void note(ir::DataType type, const std::string& where);
  void report() const;

 private:
  std::string first_;
  size_t more_ = 0;
};

}  // namespace octet::onnx

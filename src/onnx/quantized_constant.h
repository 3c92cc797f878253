// A constant behind a DequantizeLinear (of codes, or of a QuantizeLinear of floats), and what operators make of it.
// Everything computed from constants is a constant; where an operator only moves elements, codes and scales move with
// them, so that the layer that reads the result stays INT8.
#pragma once
#include <optional>
#include <vector>

#include "onnx/fold.h"

namespace octet::onnx {

struct QuantizedConstant {
  ir::Tensor data;                       // int8, uint8 or int32 codes; float32 where a QuantizeLinear makes the codes
  ir::Tensor scale;                      // float32: one element, or one for each index of `axis` of the data
  std::optional<ir::Tensor> zero_point;  // as many, of the type of the codes
  int64_t axis = 1;                      // as the file says it

  // The codes: `data`, or what QuantizeLinear makes of it.
  ir::Tensor codes() const;
  // What DequantizeLinear gives.
  ir::Tensor values() const;
};

// The zero point is 0 where it is left out, of the type of `data`, or uint8 for floats. Nothing for what is not
// covered: other types, scales that are not positive (the import refuses them where they are used), scales that do not
// fit.
std::optional<QuantizedConstant> quantized_constant(const ir::Tensor& data, const ir::Tensor& scale,
                                                    const ir::Tensor* zero_point, int64_t axis);

// The outputs of an operator that moves the elements of `quantized` (nullptr: the input of that number is no such
// constant and stands in the request). Nothing when it computes, mixes them with others, or when the result has no axis
// with one scale for each index.
std::optional<std::vector<QuantizedConstant>> moved(const FoldRequest& request,
                                                    const std::vector<const QuantizedConstant*>& quantized,
                                                    ir::MemoryBudget& budget);

}  // namespace octet::onnx

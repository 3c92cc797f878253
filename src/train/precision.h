// Which types the values of a run have: the one place that knows what is low.
#pragma once
#include <c10/core/ScalarType.h>

#include "train/options/precision.h"

namespace octet::train {

// Types with fewer digits than float32. Where a run computes in one of them, it is the type
// - of what Conv, ConvTranspose, Gemm and MatMul take and give (Run::low), and of what flows between them (Run::flow);
// - of cheap element-wise operators, pooling and whatever moves elements, which keep the type that comes (Run::plain);
// and float32 is the type of parameters and their gradients, statistics, scales and the graph's outputs, and of
// operators that need range or digits: exponentials, roots, softmax, local response norm (Run::precise).
inline bool is_low(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

// Of convolutions, matrix products and what flows between them. Not of kAuto: see resolve_precision.
inline at::ScalarType compute_type(Precision precision) {
  if (precision == Precision::kFloat64) return at::kDouble;
  return precision == Precision::kBFloat16 ? at::kBFloat16 : at::kFloat;
}

// Of parameters, statistics and losses.
inline at::ScalarType master_type(Precision precision) {
  return precision == Precision::kFloat64 ? at::kDouble : at::kFloat;
}

// Whether quantized values flow as integer codes (Slot::Form::kCodes): a low type rounds the numbers off the INT8 grid
// but holds the codes exactly. Products of codes need the range of float32, which float16 lacks: 127 * 127 for each of
// a few terms is beyond its 65504.
inline bool flows_as_codes(at::ScalarType compute) {
  return compute == at::kBFloat16;
}

}  // namespace octet::train

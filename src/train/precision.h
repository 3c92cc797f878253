// Which types the values of a run have: the one place that knows what is low.
#pragma once
#include <c10/core/ScalarType.h>

#include "train/executor.h"

namespace octet::train {

// Types with fewer digits than float32. Where a run computes in one of them, it is the type
// - of what Conv, ConvTranspose, Gemm and MatMul take and give (Run::low), and of what flows between them (Run::flow);
// - of cheap element-wise operators, pooling and whatever moves elements, which keep the type that comes (Run::plain);
// and float32 is the type of parameters and their gradients, statistics, scales and the graph's outputs, and of
// operators that need range or digits: exponentials, roots, softmax, layer and local response norm (Run::precise).
// Where the model is cast (opt levels O2 and O3), parameters and their gradients are low, too, but those of
// normalizations where they are to stay float32, and so is what every operator gives (Run::set); inside, operators
// that need range still compute in float32. Scales and the graph's outputs are float32 in any case.
inline bool is_low(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

// As an experiment names it: "fp32", "bf16", "fp16"; others as LibTorch does.
inline std::string type_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "fp32";
    case at::kBFloat16:
      return "bf16";
    case at::kHalf:
      return "fp16";
    case at::kDouble:
      return "fp64";
    default:
      return at::toString(type);
  }
}

// Of convolutions, matrix products and what flows between them. Not of kAuto: see resolve_precision.
inline at::ScalarType compute_type(Precision precision) {
  if (precision == Precision::kFloat64) return at::kDouble;
  if (precision == Precision::kFloat16) return at::kHalf;
  return precision == Precision::kBFloat16 ? at::kBFloat16 : at::kFloat;
}

// Of parameters, statistics and losses.
inline at::ScalarType master_type(Precision precision) {
  return precision == Precision::kFloat64 ? at::kDouble : at::kFloat;
}

// What the executor holds a constant for.
enum class Held { kWeight, kNormalization, kScale };  // kNormalization: scale, shift and statistics

// The type in which it is held.
inline at::ScalarType held_type(const ExecutorOptions& options, Held held) {
  const bool cast =
      options.cast_model && held != Held::kScale && !(held == Held::kNormalization && options.keep_batchnorm_fp32);
  return cast ? compute_type(options.precision) : master_type(options.precision);
}

// Whether quantized values flow as integer codes (Slot::Form::kCodes): a low type rounds the numbers off the INT8 grid
// but holds the codes exactly. Products of codes need the range of float32, which float16 lacks: 127 * 127 for each of
// a few terms is beyond its 65504, but it rounds numbers of the grid by a sixteenth of a code at most. And what
// finishes such products takes float32 biases, which a cast model has not.
inline bool flows_as_codes(at::ScalarType compute, bool cast_model = false) {
  return compute == at::kBFloat16 && !cast_model;
}

}  // namespace octet::train

// A model whose arithmetic is float32 becomes one whose arithmetic is float16, as TensorRT 11 wants it to stand in the
// graph (older versions have a flag for it). The counterpart of widen.h.
#pragma once
#include "onnx/out_model.h"

namespace octet::onnx {

// Constants are rounded to float16, casts stand behind float32 inputs and before float32 outputs, which keep name and
// type. What ONNX takes in float32 only (the scales of Resize) stays. UserError naming a constant that float16 does not
// reach. Not for models with QuantizeLinear (broken invariant).
void narrow(OutModel& model);

}  // namespace octet::onnx

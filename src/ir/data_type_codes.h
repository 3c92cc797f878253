// ONNX numbers its data types (TensorProto.DataType); the attributes "to" and "output_dtype" hold such numbers.
#pragma once
#include "ir/tensor.h"

namespace octet::ir {

// kUndefined for a type that Octet does not know.
DataType data_type_from_onnx(int64_t code);
// 0 for kUndefined.
int data_type_to_onnx(DataType type);

}  // namespace octet::ir

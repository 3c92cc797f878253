// Small graphs and error messages for the tests of this folder.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace octet::ir {

inline TensorType floats(Shape shape) {
  return {DataType::kFloat32, std::move(shape)};
}

inline Tensor filled(const Shape& shape, float value = 1) {
  return Tensor::of<float>(shape, std::vector<float>(static_cast<size_t>(element_count(shape)), value));
}

inline Tensor ints(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

// The message of the UserError that `call` throws; empty when it throws none.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

}  // namespace octet::ir

#include "onnx/fold.h"

#include <algorithm>

#include "onnx/fold_internal.h"

namespace octet::onnx {
namespace internal {

using ir::Shape;
using ir::Tensor;

int64_t bounded_count(const Shape& shape) {
  constexpr int64_t kMax = int64_t{1} << 32;
  if (shape.size() > 64) fail("a constant of ", shape.size(), " dimensions");
  int64_t count = 1;
  for (const int64_t d : shape) {
    if (d < 0 || d > kMax || (d > 0 && count > kMax / d))
      fail("a constant of the impossible shape ", ir::shape_string(shape));
    count *= d;
  }
  return count;
}

int64_t int_attribute(const ir::Attributes& attributes, const char* key, int64_t fallback) {
  const auto it = attributes.find(key);
  if (it == attributes.end()) return fallback;
  const int64_t* value = std::get_if<int64_t>(&it->second);
  if (!value) fail("attribute '", key, "' should be an integer");
  return *value;
}

std::string string_attribute(const ir::Attributes& attributes, const char* key, const std::string& fallback) {
  const auto it = attributes.find(key);
  if (it == attributes.end()) return fallback;
  const std::string* value = std::get_if<std::string>(&it->second);
  if (!value) fail("attribute '", key, "' should be a string");
  return *value;
}

const Tensor& required(const FoldRequest& request, size_t index) {
  if (index >= request.inputs.size() || !request.inputs[index]) fail("required input ", index, " is absent");
  return *request.inputs[index];
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  if (std::max(a.size(), b.size()) > 64) fail("too many dimensions");
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      fail("the shapes ", ir::shape_string(a), " and ", ir::shape_string(b), " cannot be broadcast");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace internal

void FoldBudget::charge(int64_t bytes) {
  if (bytes > left_) fail("its constants would take more memory than a model of this size can need");
  left_ -= bytes;
}

bool can_fold(std::string_view op) {
  return internal::is_movement(op) || internal::is_arithmetic(op);
}

std::optional<std::vector<ir::Tensor>> fold(const FoldRequest& request, FoldBudget& budget) {
  return internal::is_movement(request.op) ? internal::fold_movement(request, budget)
                                           : internal::fold_arithmetic(request, budget);
}

}  // namespace octet::onnx

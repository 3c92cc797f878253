#include "ir/evaluate.h"

#include <algorithm>
#include <cmath>

#include "ir/evaluate_parts.h"
#include "ir/infer.h"

namespace octet::ir {
namespace {

template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From>
Tensor packed_as(const Shape& shape, const std::vector<From>& values) {
  OCTET_CHECK(values.size() == static_cast<size_t>(element_count(shape)), values.size(), " values");
  return Tensor::made<To>(shape, [&](std::span<To> out) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = converted<To>(values[i]);
  });
}

template <typename From>
std::optional<Tensor> packed_values(DataType type, const Shape& shape, const std::vector<From>& values) {
  switch (type) {
    case DataType::kFloat32:
      return packed_as<float>(shape, values);
    case DataType::kFloat64:
      return packed_as<double>(shape, values);
    case DataType::kInt8:
      return packed_as<int8_t>(shape, values);
    case DataType::kUInt8:
      return packed_as<uint8_t>(shape, values);
    case DataType::kInt32:
      return packed_as<int32_t>(shape, values);
    case DataType::kInt64:
      return packed_as<int64_t>(shape, values);
    case DataType::kBool:
      return packed_as<bool>(shape, values);
    default:
      return std::nullopt;
  }
}

// Where no output has an element, whatever the sizes of its other axes are: rules walk over those.
std::optional<std::vector<Tensor>> empty_outputs(const Node& node) {
  std::vector<Tensor> out;
  for (const Value* v : node.outputs) {
    const std::optional<Shape>& shape = v->type.shape;
    if (!shape || std::count(shape->begin(), shape->end(), 0) == 0) return std::nullopt;
    out.emplace_back(v->type.data_type, *shape, std::vector<std::byte>());
  }
  return out;
}

}  // namespace

void MemoryBudget::charge(int64_t bytes) {
  if (bytes > left_) fail("its constants would take more memory than a model of this size can need");
  left_ -= bytes;
}

std::optional<std::vector<Tensor>> evaluate(const Node& node, const std::vector<const Tensor*>& inputs,
                                            MemoryBudget& budget) {
  const Alone alone(node, inputs);
  if (auto nothing = empty_outputs(alone.node())) return nothing;
  return node.info().evaluate(alone.node(), budget);
}

Alone::Alone(const Node& like, const std::vector<const Tensor*>& inputs)
    : node_{like.kind, like.name, {}, {}, like.attributes} {
  for (const Tensor* input : inputs) {
    Value& value = values_.emplace_back();
    if (input) value.type = {input->data_type(), input->shape()}, value.constant = *input;
    node_.inputs.push_back(input ? &value : nullptr);
  }
  for (size_t i = 0; i < like.outputs.size(); ++i) node_.outputs.push_back(&values_.emplace_back());
  infer_node(node_);
}

bool is_integer(DataType type) {
  return type == DataType::kInt8 || type == DataType::kUInt8 || type == DataType::kInt32 || type == DataType::kInt64 ||
         type == DataType::kBool;
}

bool is_float(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat64;
}

std::vector<double> to_doubles(const Tensor& tensor) {
  if (tensor.data_type() == DataType::kFloat64) {
    const auto values = tensor.values<double>();
    return {values.begin(), values.end()};
  }
  if (is_integer(tensor.data_type())) {
    const std::vector<int64_t> values = tensor.to_ints();
    return {values.begin(), values.end()};
  }
  std::vector<float> space;
  const std::span<const float> values = tensor.as_floats(space);
  return {values.begin(), values.end()};
}

int64_t saturated(double value) {
  return converted<int64_t>(value);
}

std::optional<Tensor> packed(DataType type, const Shape& shape, const std::vector<double>& values) {
  return packed_values(type, shape, values);
}

std::optional<Tensor> packed(DataType type, const Shape& shape, const std::vector<int64_t>& values) {
  return packed_values(type, shape, values);
}

const Tensor& tensor_of(const Node& node, size_t input) {
  return *node.input(input)->constant;
}

std::vector<double> doubles_of(const Node& node, size_t input) {
  return to_doubles(tensor_of(node, input));
}

const Shape& output_shape(const Node& node, size_t index) {
  return *node.output(index)->type.shape;
}

std::optional<std::vector<Tensor>> only_output(const Node& node, const std::vector<double>& values) {
  std::optional<Tensor> tensor = packed(node.output()->type.data_type, output_shape(node), values);
  if (!tensor) return std::nullopt;
  return {{std::move(*tensor)}};
}

}  // namespace octet::ir

// Operators on shapes: those that tell them, change them, and make tensors of them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "dense/operators.h"

namespace octet::dense {
namespace {

Tensor int_list(const Call& call, const std::vector<int64_t>& values) {
  return call.memory().of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

Tensors shape_of(const Call& call) {
  const Shape& shape = call.input(0).shape();
  const auto rank = static_cast<int64_t>(shape.size());
  const auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t from = place(call.int_attribute("start", 0)), to = place(call.int_attribute("end", rank));
  if (from >= to) return {int_list(call, {})};
  return {int_list(call, {shape.begin() + from, shape.begin() + to})};
}

Tensors size_of(const Call& call) {
  return {call.memory().of<int64_t>({}, std::vector<int64_t>{call.input(0).size()})};
}

Tensors reshape(const Call& call) {
  const Tensor& x = call.input(0);
  Shape target = call.ints(1);
  const bool zero_is_zero = call.int_attribute("allowzero", 0) != 0;
  std::optional<size_t> open;
  for (size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0 && !zero_is_zero) {
      require(i < x.rank(), "the shape ", shape_text(target), " keeps an axis that ", shape_text(x.shape()), " lacks");
      target[i] = x.shape()[i];
    }
    if (target[i] == -1) {
      require(!open, "the shape ", shape_text(target), " has two sizes that should be computed");
      open = i;
    }
  }
  Shape others = target;
  if (open) others[*open] = 1;
  const int64_t known = element_count(others);
  if (open) {
    require(known > 0 && x.size() % known == 0, shape_text(x.shape()), " has no shape ", shape_text(target));
    target[*open] = x.size() / known;
  }
  require(element_count(target) == x.size(), shape_text(x.shape()), " has no shape ", shape_text(target));
  return {x.with_shape(std::move(target))};
}

Tensors flatten(const Call& call) {
  const Tensor& x = call.input(0);
  const auto rank = static_cast<int64_t>(x.rank());
  int64_t axis = call.int_attribute("axis", 1);
  require(axis >= -rank && axis <= rank, "axis ", axis, " is not one of a tensor of rank ", rank);
  if (axis < 0) axis += rank;
  const auto first = static_cast<size_t>(axis);
  return {x.with_shape({count_of(x.shape(), 0, first), count_of(x.shape(), first, x.rank())})};
}

Tensors squeeze(const Call& call) {
  const Tensor& x = call.input(0);
  std::vector<bool> out_of(x.rank(), false);
  if (const auto axes = call.optional_ints(1)) {
    for (const int64_t given : *axes) {
      const size_t axis = normal_axis(given, x.rank());
      require(x.shape()[axis] == 1, "axis ", axis, " of ", shape_text(x.shape()), " is not of size 1");
      out_of[axis] = true;
    }
  } else {
    for (size_t i = 0; i < x.rank(); ++i) out_of[i] = x.shape()[i] == 1;
  }
  Shape shape;
  for (size_t i = 0; i < x.rank(); ++i)
    if (!out_of[i]) shape.push_back(x.shape()[i]);
  return {x.with_shape(std::move(shape))};
}

Tensors unsqueeze(const Call& call) {
  const Tensor& x = call.input(0);
  const std::vector<int64_t> axes = call.ints(1);
  const size_t rank = x.rank() + axes.size();
  std::vector<bool> is_new(rank, false);
  for (const int64_t given : axes) {
    const size_t axis = normal_axis(given, rank);
    require(!is_new[axis], "axis ", axis, " is there twice");
    is_new[axis] = true;
  }
  Shape shape;
  for (size_t i = 0, from = 0; i < rank; ++i) shape.push_back(is_new[i] ? 1 : x.shape()[from++]);
  return {x.with_shape(std::move(shape))};
}

// One element again and again.
Tensor filled(const Call& call, Type type, Shape shape, const std::byte* element) {
  Tensor out = call.memory().make(type, std::move(shape));
  const size_t size = type_size(type);
  for (size_t i = 0; i < static_cast<size_t>(out.size()); ++i) std::memcpy(out.data() + i * size, element, size);
  return out;
}

// The value is one element, which the importer writes as a type and a number.
Tensors constant_of_shape(const Call& call) {
  const Type type = output_type(call.operation(), 0, {});
  const Shape shape = call.ints(0);
  const int64_t whole = call.int_attribute("value_int", 0);
  const float number = call.float_attribute("value_float", 0);
  return {dispatch(type, [&]<typename T>() {
    const T value = std::is_same_v<T, float> ? static_cast<T>(number) : static_cast<T>(whole);
    return filled(call, type, shape, reinterpret_cast<const std::byte*>(&value));
  })};
}

Tensors range(const Call& call) {
  const Tensor &start = call.input(0), &limit = call.input(1), &step = call.input(2);
  require(start.size() == 1 && limit.size() == 1 && step.size() == 1 && start.type() == limit.type() &&
              start.type() == step.type() && start.type() != Type::kBool,
          "start, limit and step should be three numbers of one type");
  return {dispatch(start.type(), [&]<typename T>() -> Tensor {
    if constexpr (std::is_same_v<T, bool>) {
      fail("is not there for bool");
    } else {
      const auto a = static_cast<double>(start.values<T>()[0]), b = static_cast<double>(limit.values<T>()[0]),
                 d = static_cast<double>(step.values<T>()[0]);
      const double count = std::max(std::ceil((b - a) / d), 0.0);
      require(d != 0 && count <= 1e10, "a range from ", a, " to ", b, " by ", d);
      Tensor out = call.memory().make<T>({static_cast<int64_t>(count)});
      const auto to = out.mutable_values<T>();
      for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(a + static_cast<double>(i) * d);
      return out;
    }
  })};
}

}  // namespace

std::vector<Operator> shape_operators() {
  return {{"Shape", shape_of, 1, 1, 1, Typing::kInt64, {"start", "end"}},
          {"Size", size_of, 1, 1, 1, Typing::kInt64},
          {"Reshape", reshape, 2, 2, 1, Typing::kFirst, {"allowzero"}},
          {"Flatten", flatten, 1, 1, 1, Typing::kFirst, {"axis"}},
          {"Squeeze", squeeze, 1, 2},
          {"Unsqueeze", unsqueeze, 2, 2},
          {"ConstantOfShape", constant_of_shape, 1, 1, 1, Typing::kValue, {"value_type", "value_int", "value_float"}},
          {"Range", range, 3, 3}};
}

}  // namespace octet::dense

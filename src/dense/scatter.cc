// Operators that write where an input says.
#include <algorithm>
#include <cstring>

#include "dense/operators.h"
#include "dense/places.h"

namespace octet::dense {
namespace {

enum class Join { kNone, kAdd, kMul, kMax, kMin };

Join join_of(const Call& call) {
  const std::string text = call.string_attribute("reduction", "none");
  if (text == "none") return Join::kNone;
  if (text == "add") return Join::kAdd;
  if (text == "mul") return Join::kMul;
  if (text == "max") return Join::kMax;
  if (text == "min") return Join::kMin;
  fail("reduction is '", text, "'; expected none, add, mul, max or min");
}

template <typename T>
T joined(T a, T b, Join join) {
  switch (join) {
    case Join::kAdd:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      else
        return a + b;
    case Join::kMul:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      else
        return a * b;
    case Join::kMax:
      return std::max(a, b);
    case Join::kMin:
      return std::min(a, b);
    case Join::kNone:
      break;
  }
  return b;
}

Tensor copy_of(const Tensor& x, Memory& memory) {
  Tensor out = memory.make(x.type(), x.shape());
  std::copy(x.bytes().begin(), x.bytes().end(), out.data());
  return out;
}

void require_update_type(const Tensor& x, const Tensor& updates) {
  require(x.type() == updates.type(), "the data hold ", type_name(x.type()), ", the updates ",
          type_name(updates.type()));
}

Tensors scatter_elements(const Call& call) {
  const Tensor &x = call.input(0), &indices = call.input(1), &updates = call.input(2);
  require_update_type(x, updates);
  require(x.rank() == indices.rank() && indices.shape() == updates.shape(), "data ", shape_text(x.shape()),
          ", indices ", shape_text(indices.shape()), " and updates ", shape_text(updates.shape()),
          " do not fit each other");
  const size_t axis = normal_axis(call.int_attribute("axis", 0), x.rank());
  for (size_t i = 0; i < x.rank(); ++i)
    require(i == axis || indices.shape()[i] <= x.shape()[i], "the indices ", shape_text(indices.shape()),
            " do not fit ", shape_text(x.shape()));
  const Join join = join_of(call);
  const std::vector<int64_t> at = call.ints(1);
  Tensor out = copy_of(x, call.memory());
  Shape steps = steps_of(x.shape());
  const int64_t along = steps[axis], length = x.shape()[axis];
  steps[axis] = 0;
  dispatch(x.type(), [&]<typename T>() {
    const auto from = updates.values<T>();
    const auto to = out.mutable_values<T>();
    walk(indices.shape(), {steps}, [&](int64_t i, const std::vector<int64_t>& place) {
      T& target = to[static_cast<size_t>(place[0] + along * normal_index(at[static_cast<size_t>(i)], length))];
      target = joined<T>(target, from[static_cast<size_t>(i)], join);
    });
  });
  return {out};
}

Tensors scatter_nd(const Call& call) {
  const Tensor &x = call.input(0), &indices = call.input(1), &updates = call.input(2);
  require_update_type(x, updates);
  const Slots slots = slots_of(x.shape(), indices.shape(), call.ints(1), 0);
  Shape expected(indices.shape().begin(), indices.shape().end() - 1);
  expected.insert(expected.end(), x.shape().begin() + static_cast<int64_t>(slots.axes), x.shape().end());
  require(updates.shape() == expected, "the updates are ", shape_text(updates.shape()), ", expected ",
          shape_text(expected));
  const Join join = join_of(call);
  Tensor out = copy_of(x, call.memory());
  dispatch(x.type(), [&]<typename T>() {
    const auto from = updates.values<T>();
    const auto to = out.mutable_values<T>();
    const auto size = static_cast<size_t>(slots.size);
    for (size_t i = 0; i < slots.first.size(); ++i)
      for (size_t k = 0; k < size; ++k) {
        T& target = to[static_cast<size_t>(slots.first[i]) + k];
        target = joined<T>(target, from[i * size + k], join);
      }
  });
  return {out};
}

}  // namespace

std::vector<Operator> scatter_operators() {
  return {{"ScatterElements", scatter_elements, 3, 3, 1, Typing::kFirst, {"axis", "reduction"}},
          {"ScatterND", scatter_nd, 3, 3, 1, Typing::kFirst, {"reduction"}}};
}

}  // namespace octet::dense

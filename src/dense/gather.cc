// Operators that read where an input says.
#include <cstring>

#include "dense/operators.h"
#include "dense/places.h"

namespace octet::dense {
namespace {

Tensors gather(const Call& call) {
  const Tensor& x = call.input(0);
  const std::vector<int64_t> at = call.ints(1);
  const size_t axis = normal_axis(call.int_attribute("axis", 0), x.rank());
  const int64_t length = x.shape()[axis];
  Shape shape(x.shape().begin(), x.shape().begin() + static_cast<int64_t>(axis));
  shape.insert(shape.end(), call.input(1).shape().begin(), call.input(1).shape().end());
  shape.insert(shape.end(), x.shape().begin() + static_cast<int64_t>(axis) + 1, x.shape().end());
  Tensor out = call.memory().make(x.type(), shape);
  const size_t row = static_cast<size_t>(count_of(x.shape(), axis + 1, x.rank())) * type_size(x.type());
  const int64_t outer = count_of(x.shape(), 0, axis);
  std::byte* to = out.data();
  if (out.size() == 0) return {out};
  for (int64_t o = 0; o < outer; ++o)
    for (const int64_t index : at) {
      const int64_t place = o * length + normal_index(index, length);
      std::memcpy(to, x.bytes().data() + static_cast<size_t>(place) * row, row);
      to += row;
    }
  return {out};
}

Tensors gather_elements(const Call& call) {
  const Tensor &x = call.input(0), &indices = call.input(1);
  require(x.rank() == indices.rank(), "the indices ", shape_text(indices.shape()), " do not fit ",
          shape_text(x.shape()));
  const size_t axis = normal_axis(call.int_attribute("axis", 0), x.rank());
  for (size_t i = 0; i < x.rank(); ++i)
    require(i == axis || indices.shape()[i] <= x.shape()[i], "the indices ", shape_text(indices.shape()),
            " do not fit ", shape_text(x.shape()));
  const std::vector<int64_t> at = call.ints(1);
  Tensor out = call.memory().make(x.type(), indices.shape());
  Shape steps = steps_of(x.shape());
  const int64_t along = steps[axis], length = x.shape()[axis];
  steps[axis] = 0;
  const size_t size = type_size(x.type());
  walk(indices.shape(), {steps}, [&](int64_t i, const std::vector<int64_t>& place) {
    const int64_t from = place[0] + along * normal_index(at[static_cast<size_t>(i)], length);
    std::memcpy(out.data() + static_cast<size_t>(i) * size, x.bytes().data() + static_cast<size_t>(from) * size, size);
  });
  return {out};
}

Tensors gather_nd(const Call& call) {
  const Tensor &x = call.input(0), &indices = call.input(1);
  const int64_t batch_axes = call.int_attribute("batch_dims", 0);
  require(batch_axes >= 0, "batch_dims is ", batch_axes);
  const Slots slots = slots_of(x.shape(), indices.shape(), call.ints(1), static_cast<size_t>(batch_axes));
  Shape shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), x.shape().begin() + static_cast<int64_t>(slots.axes), x.shape().end());
  Tensor out = call.memory().make(x.type(), shape);
  const size_t row = static_cast<size_t>(slots.size) * type_size(x.type());
  if (out.size() == 0) return {out};
  for (size_t i = 0; i < slots.first.size(); ++i)
    std::memcpy(out.data() + i * row, x.bytes().data() + static_cast<size_t>(slots.first[i]) * type_size(x.type()),
                row);
  return {out};
}

// Rows, or elements where no axis is said, of which a condition holds.
Tensors compress(const Call& call) {
  const Tensor &x = call.input(0), &condition = call.input(1);
  require(condition.type() == Type::kBool && condition.rank() == 1, "the condition should be a list of bool");
  const bool flat = call.attribute("axis") == nullptr;
  const size_t axis = flat ? 0 : normal_axis(call.int_attribute("axis", 0), x.rank());
  const Shape seen = flat ? Shape{x.size()} : x.shape();
  const auto holds = condition.values<bool>();
  require(condition.size() <= seen[axis], "the condition has ", condition.size(), " elements, the axis ", seen[axis]);
  std::vector<size_t> kept;
  for (size_t i = 0; i < holds.size(); ++i)
    if (holds[i]) kept.push_back(i);
  Shape shape = seen;
  shape[axis] = static_cast<int64_t>(kept.size());
  Tensor out = call.memory().make(x.type(), shape);
  const size_t row = static_cast<size_t>(count_of(seen, axis + 1, seen.size())) * type_size(x.type());
  std::byte* to = out.data();
  for (int64_t o = 0; out.size() > 0 && o < count_of(seen, 0, axis); ++o)
    for (const size_t k : kept) {
      std::memcpy(to, x.bytes().data() + (static_cast<size_t>(o * seen[axis]) + k) * row, row);
      to += row;
    }
  return {out};
}

}  // namespace

std::vector<Operator> gather_operators() {
  return {{"Gather", gather, 2, 2, 1, Typing::kFirst, {"axis"}},
          {"GatherElements", gather_elements, 2, 2, 1, Typing::kFirst, {"axis"}},
          {"GatherND", gather_nd, 2, 2, 1, Typing::kFirst, {"batch_dims"}},
          {"Compress", compress, 2, 2, 1, Typing::kFirst, {"axis"}}};
}

}  // namespace octet::dense

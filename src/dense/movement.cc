// Operators that move numbers and compute none.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/padded_place.h"
#include "dense/operators.h"

namespace octet::dense {
namespace {

// out[i] = x at the places that `steps` says from `first` on, for each element of out.
void copy_strided(const Tensor& x, int64_t first, const Shape& steps, Tensor& out) {
  dispatch(x.type(), [&]<typename T>() {
    const T* from = x.values<T>().data() + first;
    const auto to = out.mutable_values<T>();
    walk(out.shape(), {steps},
         [&](int64_t i, const std::vector<int64_t>& at) { to[static_cast<size_t>(i)] = from[at[0]]; });
  });
}

Tensors transpose(const Call& call) {
  const Tensor& x = call.input(0);
  std::vector<int64_t> order(x.rank());
  std::iota(order.rbegin(), order.rend(), 0);
  if (const auto given = call.ints_attribute("perm")) order = *given;
  std::vector<bool> seen(x.rank(), false);
  require(order.size() == x.rank(), "perm has ", order.size(), " axes, the input ", x.rank());
  const Shape own = steps_of(x.shape());
  Shape shape, steps;
  for (const int64_t given : order) {
    const size_t axis = normal_axis(given, x.rank());
    require(!seen[axis], "perm has axis ", axis, " twice");
    seen[axis] = true;
    shape.push_back(x.shape()[axis]), steps.push_back(own[axis]);
  }
  Tensor out = call.memory().make(x.type(), shape);
  copy_strided(x, 0, steps, out);
  return {out};
}

Tensors expand(const Call& call) {
  const Tensor& x = call.input(0);
  Tensor out = call.memory().make(x.type(), broadcast(x.shape(), call.ints(1)));
  copy_strided(x, 0, broadcast_steps(x.shape(), out.shape()), out);
  return {out};
}

Tensors tile(const Call& call) {
  const Tensor& x = call.input(0);
  const std::vector<int64_t> repeats = call.ints(1);
  require(repeats.size() == x.rank(), "repeats has ", repeats.size(), " numbers for a tensor of rank ", x.rank());
  // [a, b] is seen as [1, a, 1, b] and broadcast.
  Shape open, wide, shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    require(repeats[i] >= 0 && repeats[i] <= (int64_t{1} << 32), "an axis is repeated ", repeats[i], " times");
    open.insert(open.end(), {1, x.shape()[i]});
    wide.insert(wide.end(), {repeats[i], x.shape()[i]});
    shape.push_back(element_count({repeats[i], x.shape()[i]}));
  }
  Tensor out = call.memory().make(x.type(), wide);
  copy_strided(x, 0, broadcast_steps(open, wide), out);
  return {out.with_shape(shape)};
}

Tensors concat(const Call& call) {
  const Tensor& first = call.input(0);
  const size_t axis = normal_axis(call.int_attribute("axis", 0), first.rank());
  Shape shape = first.shape();
  shape[axis] = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const Tensor& x = call.input(i);
    Shape others = x.shape(), expected = first.shape();
    require(x.type() == first.type() && x.rank() == first.rank(), "input ", i, " is ", type_name(x.type()),
            shape_text(x.shape()), ", the first ", type_name(first.type()), shape_text(first.shape()));
    others[axis] = expected[axis] = 0;
    require(others == expected, "input ", i, " is ", shape_text(x.shape()), ", the first ", shape_text(first.shape()));
    shape[axis] += x.shape()[axis];
  }
  Tensor out = call.memory().make(first.type(), shape);
  const size_t inner = static_cast<size_t>(count_of(shape, axis + 1, shape.size())) * type_size(first.type());
  std::byte* to = out.data();
  for (int64_t o = 0; out.size() > 0 && o < count_of(shape, 0, axis); ++o)
    for (size_t i = 0; i < call.input_count(); ++i) {
      const size_t row = static_cast<size_t>(call.input(i).shape()[axis]) * inner;
      if (row > 0) std::memcpy(to, call.input(i).bytes().data() + static_cast<size_t>(o) * row, row);
      to += row;
    }
  return {out};
}

Tensors split(const Call& call) {
  const Tensor& x = call.input(0);
  const size_t axis = normal_axis(call.int_attribute("axis", 0), x.rank()), parts = call.output_count();
  std::vector<int64_t> sizes;
  if (const auto given = call.optional_ints(1)) {
    sizes = *given;
  } else {
    const auto n = static_cast<int64_t>(parts), length = x.shape()[axis];
    const int64_t each = (length + n - 1) / n;
    for (int64_t left = length; sizes.size() < parts; left -= sizes.back()) sizes.push_back(std::min(each, left));
  }
  int64_t sum = 0;
  for (const int64_t s : sizes) {
    require(s >= 0 && s <= x.shape()[axis], "a part of size ", s, " of an axis of size ", x.shape()[axis]);
    sum += s;
  }
  require(sizes.size() == parts && sum == x.shape()[axis], sizes.size(), " sizes of together ", sum, " for ", parts,
          " parts of an axis of size ", x.shape()[axis]);
  Tensors out;
  int64_t at = 0;
  const Shape steps = steps_of(x.shape());
  for (const int64_t s : sizes) {
    Shape shape = x.shape();
    shape[axis] = s;
    out.push_back(call.memory().make(x.type(), shape));
    copy_strided(x, at * steps[axis], steps, out.back());
    at += s;
  }
  return out;
}

Tensors slice(const Call& call) {
  const Tensor& x = call.input(0);
  const std::vector<int64_t> starts = call.ints(1), ends = call.ints(2);
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto given = call.optional_ints(3)) axes = *given;
  if (const auto given = call.optional_ints(4)) steps = *given;
  require(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
          "starts, ends, axes and steps are not of one length");
  Shape shape = x.shape(), walk_steps = steps_of(x.shape());
  int64_t first = 0;
  std::vector<bool> seen(x.rank(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normal_axis(axes[i], x.rank());
    require(!seen[axis], "axis ", axis, " is there twice");
    seen[axis] = true;
    const int64_t length = x.shape()[axis], step = steps[i];
    require(step != 0 && step > std::numeric_limits<int64_t>::min(), "a step of ", step);
    const auto from_front = [&](int64_t v) { return v < 0 ? std::max<int64_t>(v + length, -1) : v; };
    // Going down, the end may lie before the first element.
    int64_t start = from_front(starts[i]), end = from_front(ends[i]);
    if (step > 0)
      start = std::clamp<int64_t>(start, 0, length), end = std::clamp<int64_t>(end, 0, length);
    else
      start = std::clamp<int64_t>(start, -1, length - 1), end = std::clamp<int64_t>(end, -1, length - 1);
    const int64_t distance = step > 0 ? end - start : start - end, each = step > 0 ? step : -step;
    const int64_t count = distance <= 0 ? 0 : (distance - 1) / each + 1;
    if (count > 0) first += start * walk_steps[axis];
    shape[axis] = count;
    walk_steps[axis] = count > 1 ? walk_steps[axis] * step : 0;
  }
  Tensor out = call.memory().make(x.type(), shape);
  if (out.size() > 0) copy_strided(x, first, walk_steps, out);
  return {out};
}

// By a number, or by elements of the input.
Tensors pad(const Call& call) {
  const Tensor& x = call.input(0);
  const std::string mode = call.string_attribute("mode", "constant");
  require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap", "mode is '", mode,
          "', expected constant, reflect, edge or wrap");
  const std::vector<int64_t> amounts = call.ints(1);
  std::vector<int64_t> axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto given = call.optional_ints(3)) axes = *given;
  require(amounts.size() == 2 * axes.size(), amounts.size(), " pads for ", axes.size(), " axes");
  Shape before(x.rank(), 0), shape = x.shape();
  std::vector<bool> seen(x.rank(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = normal_axis(axes[i], x.rank());
    const int64_t front = amounts[i], back = amounts[axes.size() + i];
    require(!seen[axis], "axis ", axis, " is padded twice");
    seen[axis] = true;
    constexpr int64_t kMost = int64_t{1} << 40;
    require(front >= -kMost && front <= kMost && back >= -kMost && back <= kMost && front + back + shape[axis] >= 0,
            "axis ", axis, " of ", shape_text(x.shape()), " is padded by ", front, " and ", back);
    before[axis] = front, shape[axis] += front + back;
  }
  Tensor out = call.memory().make(x.type(), shape);
  if (out.size() == 0) return {out};
  const Shape steps = steps_of(x.shape());
  dispatch(x.type(), [&]<typename T>() {
    T value{};
    if (const Tensor* given = call.optional(2)) {
      require(given->type() == x.type() && given->size() == 1, "the number to pad with should be one ",
              type_name(x.type()));
      value = given->values<T>()[0];
    }
    const auto from = x.values<T>();
    std::vector<int64_t> index(x.rank(), 0);
    std::vector<std::optional<int64_t>> places(x.rank());  // of the index, in x; nothing: beside it
    const auto look = [&](size_t d) { places[d] = padded_place(index[d] - before[d], x.shape()[d], mode); };
    for (size_t d = 0; d < x.rank(); ++d) look(d);
    for (T& element : out.mutable_values<T>()) {
      int64_t at = 0;
      bool inside = true;
      for (size_t d = 0; d < places.size(); ++d) {
        inside = inside && places[d].has_value();
        if (places[d]) at += *places[d] * steps[d];
      }
      element = inside ? from[static_cast<size_t>(at)] : value;
      for (size_t d = index.size(); d-- > 0;) {
        const bool more = ++index[d] < shape[d];
        if (!more) index[d] = 0;
        look(d);
        if (more) break;
      }
    }
  });
  return {out};
}

Tensors trilu(const Call& call) {
  const Tensor& x = call.input(0);
  require(x.rank() >= 2, "should have rank 2 or more, not ", x.rank());
  const bool upper = call.int_attribute("upper", 1) != 0;
  const int64_t shift = call.optional(1) ? call.one_int(1) : 0;
  const int64_t rows = x.shape()[x.rank() - 2], columns = x.shape()[x.rank() - 1];
  Tensor out = call.memory().make(x.type(), x.shape());
  dispatch(x.type(), [&]<typename T>() {
    const auto from = x.values<T>();
    const auto to = out.mutable_values<T>();
    for (int64_t i = 0; i < out.size(); ++i) {
      const int64_t distance = i % columns - i / columns % rows;
      to[static_cast<size_t>(i)] = (upper ? distance >= shift : distance <= shift) ? from[static_cast<size_t>(i)] : T{};
    }
  });
  return {out};
}

}  // namespace

std::vector<Operator> movement_operators() {
  constexpr size_t kMany = 1 << 16;
  return {{"Transpose", transpose, 1, 1, 1, Typing::kFirst, {"perm"}},
          {"Expand", expand, 2, 2},
          {"Tile", tile, 2, 2},
          {"Concat", concat, 1, kMany, 1, Typing::kFirst, {"axis"}},
          {"Split", split, 1, 2, kMany, Typing::kFirst, {"axis", "num_outputs"}},
          {"Slice", slice, 3, 5},
          {"Pad", pad, 2, 4, 1, Typing::kFirst, {"mode"}},
          {"Trilu", trilu, 1, 2, 1, Typing::kFirst, {"upper"}}};
}

}  // namespace octet::dense

// Operators that move the elements of constants and compute nothing with them.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "onnx/fold_internal.h"

namespace octet::onnx::internal {

using ir::Shape;
using ir::Tensor;

namespace {

std::vector<int64_t> contiguous_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// out[index] = source[offset + sum(index * strides)], in elements.
Tensor strided_copy(const Tensor& source, const Shape& shape, const std::vector<int64_t>& strides, int64_t offset,
                    FoldBudget& budget) {
  const size_t step = ir::data_type_size(source.data_type());
  const int64_t count = bounded_count(shape);
  budget.charge(count * static_cast<int64_t>(step));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * step);
  const std::byte* from = source.bytes().data();
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + static_cast<size_t>(i) * step, from + static_cast<size_t>(offset) * step, step);
    for (size_t d = shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return Tensor(source.data_type(), shape, std::move(bytes));
}

Tensor reshaped(const Tensor& tensor, const Shape& shape, FoldBudget& budget) {
  if (bounded_count(shape) != tensor.size())
    fail("a constant of shape ", ir::shape_string(tensor.shape()), " cannot be reshaped to ", ir::shape_string(shape));
  budget.charge(static_cast<int64_t>(tensor.bytes().size()));
  return Tensor(tensor.data_type(), shape, {tensor.bytes().begin(), tensor.bytes().end()});
}

std::vector<int64_t> int_input(const FoldRequest& r, size_t index) {
  const Tensor& tensor = required(r, index);
  if (tensor.data_type() != ir::DataType::kInt64 && tensor.data_type() != ir::DataType::kInt32)
    fail("input ", index, " should hold integers, not ", ir::data_type_name(tensor.data_type()));
  return tensor.to_ints();
}

bool present(const FoldRequest& r, size_t index) {
  return index < r.inputs.size() && r.inputs[index];
}

Outputs identity(const FoldRequest& r, FoldBudget&) {
  return {{required(r, 0)}};
}

Outputs reshape(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  Shape shape = int_input(r, 1);
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && int_attribute(r.attributes, "allowzero", 0) == 0) {
      if (i >= x.shape().size()) fail("the target copies dimension ", i, ", which the data does not have");
      shape[i] = x.shape()[i];
    }
    if (shape[i] == -1) {
      if (open) fail("the target shape holds -1 twice");
      open = i;
    } else {
      known = bounded_count({known, shape[i]});
    }
  }
  if (open) {
    if (known == 0 || x.size() % known != 0) fail("the target shape does not fit ", x.size(), " elements");
    shape[*open] = x.size() / known;
  }
  return {{reshaped(x, shape, budget)}};
}

Outputs flatten(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  const auto rank = static_cast<int64_t>(x.shape().size());
  int64_t axis = int_attribute(r.attributes, "axis", 1);
  if (axis < -rank || axis > rank) fail("axis ", axis, " does not exist in a tensor of rank ", rank);
  if (axis < 0) axis += rank;
  const int64_t rows = bounded_count(Shape(x.shape().begin(), x.shape().begin() + axis));
  const int64_t columns = bounded_count(Shape(x.shape().begin() + axis, x.shape().end()));
  return {{reshaped(x, {rows, columns}, budget)}};
}

Outputs squeeze(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  std::vector<bool> removed(x.shape().size(), false);
  if (present(r, 1)) {
    for (const int64_t axis : int_input(r, 1)) {
      const auto a = normal_axis(axis, x.shape().size());
      if (x.shape()[a] != 1) fail("axis ", a, " of ", ir::shape_string(x.shape()), " cannot be squeezed");
      removed[a] = true;
    }
  } else {
    for (size_t i = 0; i < removed.size(); ++i) removed[i] = x.shape()[i] == 1;
  }
  Shape shape;
  for (size_t i = 0; i < removed.size(); ++i)
    if (!removed[i]) shape.push_back(x.shape()[i]);
  return {{reshaped(x, shape, budget)}};
}

Outputs unsqueeze(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  const std::vector<int64_t> axes = int_input(r, 1);
  if (x.shape().size() + axes.size() > 64) fail("too many axes");
  std::vector<bool> added(x.shape().size() + axes.size(), false);
  for (const int64_t axis : axes) {
    const auto a = normal_axis(axis, added.size());
    if (added[a]) fail("axis ", axis, " is named twice");
    added[a] = true;
  }
  Shape shape;
  auto next = x.shape().begin();
  for (const bool one : added) shape.push_back(one ? 1 : *next++);
  return {{reshaped(x, shape, budget)}};
}

Outputs transpose(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  const size_t rank = x.shape().size();
  std::vector<int64_t> permutation = ir::all_axes(rank);
  std::reverse(permutation.begin(), permutation.end());
  if (const auto it = r.attributes.find("perm"); it != r.attributes.end()) {
    const auto* perm = std::get_if<std::vector<int64_t>>(&it->second);
    if (!perm) fail("attribute 'perm' should be a list of integers");
    if (!perm->empty()) permutation = *perm;
    ir::check_permutation(permutation, rank);
  }
  const std::vector<int64_t> from = contiguous_strides(x.shape());
  Shape shape;
  std::vector<int64_t> strides;
  for (const int64_t p : permutation) {
    const auto axis = static_cast<size_t>(p);
    shape.push_back(x.shape()[axis]);
    strides.push_back(from[axis]);
  }
  return {{strided_copy(x, shape, strides, 0, budget)}};
}

Outputs slice(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  const std::vector<int64_t> starts = int_input(r, 1), ends = int_input(r, 2);
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (present(r, 3)) axes = int_input(r, 3);
  if (present(r, 4)) steps = int_input(r, 4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    fail("starts, ends, axes and steps have different lengths");
  Shape shape = x.shape();
  std::vector<int64_t> strides = contiguous_strides(shape);
  const std::vector<int64_t> source_strides = strides;
  int64_t offset = 0;
  std::vector<bool> seen(shape.size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = normal_axis(axes[i], shape.size());
    if (seen[axis]) fail("axis ", axis, " is sliced twice");
    seen[axis] = true;
    constexpr int64_t kFar = int64_t{1} << 40;
    const int64_t size = shape[axis], step = std::clamp(steps[i], -kFar, kFar);
    if (step == 0) fail("step 0 along axis ", axis);
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    const auto place = [&](int64_t v) {
      v = std::clamp(v, -kFar, kFar);
      return std::clamp(v < 0 ? v + size : v, low, high);
    };
    const int64_t from = place(starts[i]), to = place(ends[i]);
    const int64_t length = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
    shape[axis] = std::max<int64_t>(length, 0);
    if (shape[axis] > 0) offset += from * source_strides[axis];
    strides[axis] = shape[axis] > 1 ? source_strides[axis] * step : 0;
  }
  return {{strided_copy(x, shape, strides, offset, budget)}};
}

Outputs gather(const FoldRequest& r, FoldBudget& budget) {
  const Tensor &x = required(r, 0), &at = required(r, 1);
  const std::vector<int64_t> indices = int_input(r, 1);
  const auto axis = normal_axis(int_attribute(r.attributes, "axis", 0), x.shape().size());
  Shape shape(x.shape().begin(), x.shape().begin() + static_cast<int64_t>(axis));
  const int64_t outer = bounded_count(shape);
  shape.insert(shape.end(), at.shape().begin(), at.shape().end());
  const Shape tail(x.shape().begin() + static_cast<int64_t>(axis) + 1, x.shape().end());
  shape.insert(shape.end(), tail.begin(), tail.end());
  const size_t inner = static_cast<size_t>(bounded_count(tail)) * ir::data_type_size(x.data_type());
  const size_t total = static_cast<size_t>(bounded_count(shape)) * ir::data_type_size(x.data_type());
  budget.charge(static_cast<int64_t>(total));
  std::vector<std::byte> bytes(total);
  std::byte* to = bytes.data();
  for (int64_t o = 0; o < outer && total > 0; ++o) {
    for (int64_t index : indices) {
      index = static_cast<int64_t>(normal_axis(index, static_cast<size_t>(x.shape()[axis])));
      if (inner > 0)
        std::memcpy(to, x.bytes().data() + static_cast<size_t>(o * x.shape()[axis] + index) * inner, inner);
      to += inner;
    }
  }
  return {{Tensor(x.data_type(), shape, std::move(bytes))}};
}

Outputs concat(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& first = required(r, 0);
  const auto axis = normal_axis(int_attribute(r.attributes, "axis", 0), first.shape().size());
  Shape shape = first.shape();
  shape[axis] = 0;
  for (size_t i = 0; i < r.inputs.size(); ++i) {
    const Tensor& x = required(r, i);
    if (x.data_type() != first.data_type() || x.shape().size() != shape.size())
      fail("inputs of different types or ranks cannot be concatenated");
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != axis && x.shape()[d] != shape[d]) fail("inputs of different sizes cannot be concatenated");
    shape[axis] += x.shape()[axis];
  }
  const size_t step = ir::data_type_size(first.data_type());
  const size_t total = static_cast<size_t>(bounded_count(shape)) * step;
  const Shape head(shape.begin(), shape.begin() + static_cast<int64_t>(axis));
  budget.charge(static_cast<int64_t>(total));
  std::vector<std::byte> bytes(total);
  std::byte* to = bytes.data();
  const int64_t outer = total == 0 ? 0 : bounded_count(head);
  for (int64_t o = 0; o < outer; ++o) {
    for (const Tensor* x : r.inputs) {
      const size_t run = x->bytes().size() / static_cast<size_t>(outer);
      if (run > 0) std::memcpy(to, x->bytes().data() + static_cast<size_t>(o) * run, run);
      to += run;
    }
  }
  return {{Tensor(first.data_type(), shape, std::move(bytes))}};
}

Outputs split(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  const auto axis = normal_axis(int_attribute(r.attributes, "axis", 0), x.shape().size());
  const int64_t size = x.shape()[axis], parts = static_cast<int64_t>(r.outputs);
  std::vector<int64_t> sizes;
  if (present(r, 1)) {
    sizes = int_input(r, 1);
  } else {
    const int64_t chunk = (size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(size - i * chunk, 0, chunk));
  }
  if (sizes.size() != r.outputs) fail(sizes.size(), " sizes for ", r.outputs, " outputs");
  const std::vector<int64_t> strides = contiguous_strides(x.shape());
  std::vector<Tensor> out;
  int64_t done = 0;
  for (const int64_t part : sizes) {
    if (part < 0 || part > size - done) fail("the sizes do not sum to ", size);
    Shape shape = x.shape();
    shape[axis] = part;
    out.push_back(strided_copy(x, shape, strides, done * strides[axis], budget));
    done += part;
  }
  if (done != size) fail("the sizes do not sum to ", size);
  return out;
}

Outputs expand_op(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  return {{expand(x, broadcast_shapes(x.shape(), int_input(r, 1)), budget)}};
}

Outputs tile(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  const std::vector<int64_t> repeats = int_input(r, 1);
  if (repeats.size() != x.shape().size()) fail("repeats does not fit a tensor of rank ", x.shape().size());
  // [a, b] is seen as [1, a, 1, b], broadcast, and joined again.
  Shape open, wide, shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    open.insert(open.end(), {1, x.shape()[i]});
    wide.insert(wide.end(), {repeats[i], x.shape()[i]});
    shape.push_back(bounded_count({repeats[i], x.shape()[i]}));
  }
  return {{reshaped(expand(reshaped(x, open, budget), wide, budget), shape, budget)}};
}

// Constant padding, negative amounts too; the other modes are left to the graph.
Outputs pad(const FoldRequest& r, FoldBudget& budget) {
  const Tensor& x = required(r, 0);
  if (string_attribute(r.attributes, "mode", "constant") != "constant") return std::nullopt;
  const std::vector<int64_t> pads = int_input(r, 1);
  const size_t rank = x.shape().size(), step = ir::data_type_size(x.data_type());
  if (present(r, 3)) return std::nullopt;  // upgrade.h writes pads for all axes
  if (pads.size() != 2 * rank) fail(pads.size(), " pads for a tensor of rank ", rank);
  if (present(r, 2) && (required(r, 2).size() != 1 || required(r, 2).data_type() != x.data_type())) return std::nullopt;
  constexpr int64_t kFar = int64_t{1} << 32;
  Shape shape, size;
  std::vector<int64_t> from, to;  // where the part of x that stays begins, in x and in the result
  for (size_t d = 0; d < rank; ++d) {
    const int64_t before = pads[d], after = pads[rank + d];
    if (before < -kFar || before > kFar || after < -kFar || after > kFar) fail("pads hold an impossible number");
    const int64_t padded = x.shape()[d] + before + after;
    if (padded < 0) fail("the padding removes more than axis ", d, " has: ", x.shape()[d]);
    shape.push_back(padded);
    from.push_back(std::max<int64_t>(0, -before)), to.push_back(std::max<int64_t>(0, before));
    size.push_back(std::max<int64_t>(0, x.shape()[d] - from[d] - std::max<int64_t>(0, -after)));
  }
  const int64_t count = bounded_count(shape), kept = bounded_count(size);
  budget.charge(count * static_cast<int64_t>(step));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * step, std::byte{0});
  if (present(r, 2))
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      std::memcpy(bytes.data() + i * step, required(r, 2).bytes().data(), step);
  const std::vector<int64_t> in = contiguous_strides(x.shape()), out = contiguous_strides(shape);
  std::vector<int64_t> index(rank, 0);
  for (int64_t i = 0; i < kept; ++i) {
    int64_t source = 0, target = 0;
    for (size_t d = 0; d < rank; ++d) source += (from[d] + index[d]) * in[d], target += (to[d] + index[d]) * out[d];
    std::memcpy(bytes.data() + static_cast<size_t>(target) * step,
                x.bytes().data() + static_cast<size_t>(source) * step, step);
    for (size_t d = rank; d-- > 0 && ++index[d] == size[d];) index[d] = 0;
  }
  return {{Tensor(x.data_type(), shape, std::move(bytes))}};
}

Outputs where(const FoldRequest& r, FoldBudget& budget) {
  const Tensor &condition = required(r, 0), &x = required(r, 1), &y = required(r, 2);
  if (condition.data_type() != ir::DataType::kBool || x.data_type() != y.data_type())
    fail("the condition should be bool, and both choices of one type");
  const Shape shape = broadcast_shapes(condition.shape(), broadcast_shapes(x.shape(), y.shape()));
  const Tensor c = expand(condition, shape, budget), a = expand(x, shape, budget), b = expand(y, shape, budget);
  std::vector<std::byte> bytes(b.bytes().begin(), b.bytes().end());
  const size_t step = ir::data_type_size(x.data_type());
  for (size_t i = 0; i < static_cast<size_t>(c.size()); ++i)
    if (c.bytes()[i] != std::byte{0}) std::memcpy(bytes.data() + i * step, a.bytes().data() + i * step, step);
  return {{Tensor(x.data_type(), shape, std::move(bytes))}};
}

Outputs constant_of_shape(const FoldRequest& r, FoldBudget& budget) {
  Tensor value = Tensor::scalar(0.0f);
  if (const auto it = r.attributes.find("value"); it != r.attributes.end()) {
    const Tensor* given = std::get_if<Tensor>(&it->second);
    if (!given || given->size() != 1) fail("value should be a tensor of one element");
    value = reshaped(*given, {}, budget);
  }
  return {{expand(value, int_input(r, 0), budget)}};
}

using Function = Outputs (*)(const FoldRequest&, FoldBudget&);

const std::unordered_map<std::string_view, Function>& movements() {
  static const std::unordered_map<std::string_view, Function> table = {
      {"Identity", identity}, {"Reshape", reshape},     {"Flatten", flatten},
      {"Squeeze", squeeze},   {"Unsqueeze", unsqueeze}, {"Transpose", transpose},
      {"Slice", slice},       {"Gather", gather},       {"Concat", concat},
      {"Split", split},       {"Expand", expand_op},    {"Tile", tile},
      {"Pad", pad},           {"Where", where},         {"ConstantOfShape", constant_of_shape}};
  return table;
}

}  // namespace

Tensor expand(const Tensor& tensor, const Shape& shape, FoldBudget& budget) {
  if (tensor.shape() == shape) return tensor;
  const size_t extra = shape.size() - std::min(shape.size(), tensor.shape().size());
  const std::vector<int64_t> from = contiguous_strides(tensor.shape());
  std::vector<int64_t> strides(shape.size(), 0);
  for (size_t i = 0; i < tensor.shape().size(); ++i) {
    if (tensor.shape()[i] != shape[extra + i] && tensor.shape()[i] != 1)
      fail("a tensor of shape ", ir::shape_string(tensor.shape()), " cannot be expanded to ", ir::shape_string(shape));
    if (tensor.shape()[i] != 1) strides[extra + i] = from[i];
  }
  return strided_copy(tensor, shape, strides, 0, budget);
}

bool is_movement(std::string_view op) {
  return movements().count(op) > 0;
}

Outputs fold_movement(const FoldRequest& request, FoldBudget& budget) {
  return movements().at(request.op)(request, budget);
}

}  // namespace octet::onnx::internal

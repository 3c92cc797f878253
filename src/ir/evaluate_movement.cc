// Evaluation of operators that move elements and compute nothing. The shape rules have checked all parameters.
#include <algorithm>
#include <cstring>

#include "base/padded_place.h"
#include "ir/evaluate_parts.h"
#include "ir/evaluate_rules.h"

namespace octet::ir {
namespace {

struct Taking {
  const std::byte *from, *fill;
  int64_t size;  // of an element
  const Shape& shape;
  const std::vector<AxisPath>& paths;
  std::byte* to;

  void copy(const std::byte* source, int64_t count) {
    const auto bytes = static_cast<size_t>(count * size);
    if (bytes > 0) std::memcpy(to, source, bytes);
    to += bytes;
  }
  // All elements whose indices of the axes before `axis` are settled.
  void along(size_t axis, int64_t offset) {
    const bool inside = offset != kOutside;
    if (axis == shape.size()) return copy(inside ? from + offset * size : fill, 1);
    const AxisPath& path = paths[axis];
    if (axis + 1 == shape.size() && path.step == 1 && path.offsets.empty() && inside)
      return copy(from + offset * size, shape[axis]);
    for (int64_t i = 0; i < shape[axis]; ++i) {
      const int64_t more = path.offsets.empty() ? i * path.step : path.offsets[static_cast<size_t>(i)];
      along(axis + 1, inside && more != kOutside ? offset + more : kOutside);
    }
  }
};

}  // namespace

std::vector<int64_t> row_major_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

std::vector<AxisPath> own_paths(const Tensor& x) {
  std::vector<AxisPath> paths;
  for (const int64_t stride : row_major_strides(x.shape())) paths.push_back({stride, {}});
  return paths;
}

int64_t bounded_count(const Shape& shape) {
  constexpr int64_t kMax = int64_t{1} << 32;
  if (shape.size() > 64) fail("a constant of ", shape.size(), " dimensions");
  int64_t count = 1;
  for (const int64_t d : shape) {
    if (d < 0 || d > kMax || (d > 0 && count > kMax / d))
      fail("a constant of the impossible shape ", shape_string(shape));
    count *= d;
  }
  return count;
}

Tensor take(const Tensor& x, const Shape& shape, const std::vector<AxisPath>& paths, MemoryBudget& budget,
            int64_t start, const Tensor* fill) {
  const auto size = static_cast<int64_t>(data_type_size(x.data_type()));
  const int64_t bytes = bounded_count(shape) * size;
  budget.charge(bytes);
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  const std::byte zero[8] = {};
  if (bytes > 0)
    Taking{x.bytes().data(), fill ? fill->bytes().data() : zero, size, shape, paths, out.data()}.along(0, start);
  return Tensor(x.data_type(), shape, std::move(out));
}

Tensor expand(const Tensor& x, const Shape& shape, MemoryBudget& budget) {
  if (x.shape() == shape) return x;
  if (broadcast(x.shape(), shape) != shape)
    fail("a tensor of shape ", shape_string(x.shape()), " cannot be expanded to ", shape_string(shape));
  std::vector<AxisPath> paths = own_paths(x);
  for (size_t d = 0; d < paths.size(); ++d)
    if (x.shape()[d] == 1) paths[d].step = 0;
  paths.insert(paths.begin(), shape.size() - paths.size(), AxisPath());
  return take(x, shape, paths, budget);
}

// Identity and all that reshapes.
Tensors evaluate_same_elements(const Node& node, MemoryBudget&) {
  return {{tensor_of(node, 0).with_shape(output_shape(node))}};
}

// Does nothing outside of training.
Tensors evaluate_dropout(const Node& node, MemoryBudget& budget) {
  std::vector<Tensor> out = {tensor_of(node, 0)};
  if (node.outputs.size() > 1)  // which elements were kept
    out.push_back(expand(Tensor::scalar(true), output_shape(node, 1), budget));
  return out;
}

Tensors evaluate_transpose(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  const std::vector<AxisPath> own = own_paths(x);
  std::vector<AxisPath> paths;
  for (const int64_t axis : permutation_of(node, own.size())) paths.push_back(own[static_cast<size_t>(axis)]);
  return {{take(x, output_shape(node), paths, budget)}};
}

Tensors evaluate_expand(const Node& node, MemoryBudget& budget) {
  return {{expand(tensor_of(node, 0), output_shape(node), budget)}};
}

Tensors evaluate_slice(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  const Shape& shape = output_shape(node);
  const std::vector<int64_t> starts = *constant_ints(node, 1);
  const auto steps = constant_ints(node, 4), given = constant_ints(node, 3);
  const std::vector<size_t> axes = normal_axes(node, given ? *given : all_axes(starts.size()), x.shape().size());
  std::vector<AxisPath> paths = own_paths(x);
  int64_t start = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = x.shape()[axes[i]], count = shape[axes[i]];
    if (count == 0) continue;
    AxisPath& path = paths[axes[i]];
    start += path.step * (starts[i] < 0 ? std::max<int64_t>(starts[i] + size, 0) : std::min(starts[i], size - 1));
    if (steps) path.step = count > 1 ? path.step * (*steps)[i] : 0;  // one element: its step may be huge
  }
  return {{take(x, shape, paths, budget, start)}};
}

Tensors evaluate_pad(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  const Shape& shape = output_shape(node);
  const Tensor* fill = has_value(node, 2) ? &tensor_of(node, 2) : nullptr;
  if (fill && (fill->data_type() != x.data_type() || fill->size() != 1)) return std::nullopt;
  const std::vector<int64_t> pads = *constant_ints(node, 1);
  const auto given = constant_ints(node, 3);
  const std::vector<size_t> axes = normal_axes(node, given ? *given : all_axes(shape.size()), shape.size());
  std::vector<AxisPath> paths = own_paths(x);
  for (size_t k = 0; k < axes.size() && element_count(shape) > 0; ++k) {
    if (pads[k] == 0 && pads[k + axes.size()] == 0) continue;
    AxisPath& path = paths[axes[k]];
    budget.charge(8 * shape[axes[k]]);
    for (int64_t i = 0; i < shape[axes[k]]; ++i) {
      const auto place = padded_place(i - pads[k], x.shape()[axes[k]], node.get_string("mode", "constant"));
      path.offsets.push_back(place ? *place * path.step : kOutside);
    }
  }
  return {{take(x, shape, paths, budget, 0, fill)}};
}

Tensors evaluate_concat(const Node& node, MemoryBudget& budget) {
  const Shape& shape = output_shape(node);
  const auto axis = static_cast<int64_t>(normal_axis(node, node.get_int("axis"), shape.size()));
  const DataType type = node.output()->type.data_type;
  const int64_t bytes = element_count(shape) * static_cast<int64_t>(data_type_size(type));
  budget.charge(bytes);
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  const auto rows = static_cast<size_t>(bytes == 0 ? 0 : element_count({shape.begin(), shape.begin() + axis}));
  std::byte* to = out.data();
  for (size_t row = 0; row < rows; ++row) {
    for (const Value* input : node.inputs) {
      const std::span<const std::byte> from = input->constant->bytes();
      const size_t run = from.size() / rows;
      if (run > 0) std::memcpy(to, from.data() + row * run, run);
      to += run;
    }
  }
  return {{Tensor(type, shape, std::move(out))}};
}

Tensors evaluate_split(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  const size_t axis = normal_axis(node, node.get_int("axis", 0), x.shape().size());
  const std::vector<AxisPath> paths = own_paths(x);
  std::vector<Tensor> out;
  int64_t done = 0;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    out.push_back(take(x, output_shape(node, i), paths, budget, done * paths[axis].step));
    done += output_shape(node, i)[axis];
  }
  return out;
}

Tensors evaluate_depth_to_space(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  const Shape& shape = output_shape(node);
  const int64_t block = node.get_int("blocksize");
  const bool depth_first = node.get_string("mode", "DCR") == "DCR";  // the channels of one place lie together
  std::vector<AxisPath> paths = own_paths(x);
  const int64_t of_channel = paths[1].step, of_place = of_channel * (depth_first ? shape[1] : 1);
  if (!depth_first) paths[1].step *= block * block;
  for (const size_t axis : {size_t{2}, size_t{3}}) {
    budget.charge(8 * shape[axis]);
    for (int64_t i = 0; i < shape[axis] && element_count(shape) > 0; ++i)
      paths[axis].offsets.push_back(i / block * paths[axis].step + i % block * of_place * (axis == 2 ? block : 1));
  }
  return {{take(x, shape, paths, budget)}};
}

}  // namespace octet::ir

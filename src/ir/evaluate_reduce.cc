// Evaluation of operators that see whole axes: reductions, ArgMax, Softmax.
#include <algorithm>
#include <cmath>

#include "ir/evaluate_parts.h"
#include "ir/evaluate_rules.h"

namespace octet::ir {
namespace {

// Element k of a line along an axis of a shape stands at start(line) + k * step.
struct Lines {
  size_t count = 1, length, step = 1;
  Lines(const Shape& shape, size_t axis) : length(static_cast<size_t>(shape[axis])) {
    for (size_t d = 0; d < shape.size(); ++d) count *= d == axis ? 1 : static_cast<size_t>(shape[d]);
    for (size_t d = axis + 1; d < shape.size(); ++d) step *= static_cast<size_t>(shape[d]);
  }
  size_t start(size_t line) const { return line / step * step * length + line % step; }
};

template <typename T>
std::vector<T> reduced_values(const std::vector<T>& x, const Shape& shape, const std::vector<int64_t>& strides,
                              size_t count, const std::function<T(T, T)>& f, bool mean) {
  std::vector<T> out(count);
  std::vector<bool> started(count, false);
  size_t i = 0;
  for_each_index(shape, [&](const std::vector<int64_t>& index) {
    size_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += static_cast<size_t>(index[d] * strides[d]);
    out[at] = started[at] ? f(out[at], x[i]) : x[i];
    started[at] = true;
    ++i;
  });
  for (T& v : out) v /= mean ? static_cast<T>(x.size() / count) : T{1};
  return out;
}

template <typename T>
std::vector<int64_t> largest_of(const std::vector<T>& x, const Lines& lines, bool last) {
  std::vector<int64_t> out;
  for (size_t line = 0; line < lines.count; ++line) {
    const size_t start = lines.start(line);
    size_t best = 0;
    for (size_t k = 1; k < lines.length; ++k) {
      const T next = x[start + k * lines.step], known = x[start + best * lines.step];
      if (next > known || (last && next == known)) best = k;
    }
    out.push_back(static_cast<int64_t>(best));
  }
  return out;
}

}  // namespace

Tensors reduce(const Node& node, const Binary& f, MemoryBudget& budget, bool mean) {
  const Tensor& x = tensor_of(node, 0);
  const size_t rank = x.shape().size();
  const std::vector<int64_t> axes = has_value(node, 1) ? *constant_ints(node, 1) : node.get_ints("axes");
  std::vector<bool> reduced(rank, axes.empty() && node.get_int("noop_with_empty_axes") == 0);
  for (const size_t axis : normal_axes(node, axes, rank)) reduced[axis] = true;
  std::vector<int64_t> strides(rank, 0);
  int64_t count = 1;
  for (size_t d = rank; d-- > 0;)
    if (!reduced[d]) strides[d] = count, count *= x.shape()[d];
  if (x.size() == 0) return std::nullopt;
  budget.charge(8 * (count + x.size()));
  const auto n = static_cast<size_t>(count);
  std::optional<Tensor> out;
  if (is_integer(x.data_type()))
    out = packed(x.data_type(), output_shape(node), reduced_values(x.to_ints(), x.shape(), strides, n, f.ints, mean));
  else if (is_float(x.data_type()))
    out =
        packed(x.data_type(), output_shape(node), reduced_values(to_doubles(x), x.shape(), strides, n, f.floats, mean));
  return out ? Tensors({*out}) : std::nullopt;
}

Tensors evaluate_reduce(const Node& node, MemoryBudget& budget) {
  const Binary f = binary_of(node.kind == OpKind::kReduceMax ? OpKind::kMax : OpKind::kAdd);
  return reduce(node, f, budget, node.kind == OpKind::kReduceMean);
}

Tensors evaluate_argmax(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  const size_t axis = normal_axis(node, node.get_int("axis", 0), x.shape().size());
  if (x.shape()[axis] == 0 || (!is_integer(x.data_type()) && !is_float(x.data_type()))) return std::nullopt;
  budget.charge(8 * x.size());
  const bool last = node.get_int("select_last_index") != 0;
  const Lines lines(x.shape(), axis);
  return {
      {Tensor::of<int64_t>(output_shape(node), is_integer(x.data_type()) ? largest_of(x.to_ints(), lines, last)
                                                                         : largest_of(to_doubles(x), lines, last))}};
}

// And LogSoftmax.
Tensors evaluate_softmax(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  if (!is_float(x.data_type())) return std::nullopt;
  budget.charge(8 * x.size());
  std::vector<double> y = to_doubles(x);
  const Lines lines(x.shape(), normal_axis(node, node.get_int("axis", -1), x.shape().size()));
  for (size_t line = 0; line < lines.count && !y.empty(); ++line) {
    const auto at = [&](size_t k) -> double& { return y[lines.start(line) + k * lines.step]; };
    double largest = at(0), sum = 0;
    for (size_t k = 1; k < lines.length; ++k) largest = std::max(largest, at(k));
    for (size_t k = 0; k < lines.length; ++k) sum += std::exp(at(k) - largest);
    for (size_t k = 0; k < lines.length; ++k) {
      const double shifted = at(k) - largest;
      at(k) = node.kind == OpKind::kLogSoftmax ? shifted - std::log(sum) : std::exp(shifted) / sum;
    }
  }
  return only_output(node, y);
}

// And the mean of every line and 1 / its deviation, where they are asked for.
Tensors evaluate_layer_norm(const Node& node, MemoryBudget& budget) {
  const Tensor& x = tensor_of(node, 0);
  if (!is_float(x.data_type())) return std::nullopt;
  budget.charge(8 * (x.size() + 2 * tensor_of(node, 1).size()));
  std::vector<double> y = to_doubles(x), means, inverses;
  const std::vector<double> scale = doubles_of(node, 1),
                            shift = has_value(node, 2) ? doubles_of(node, 2) : std::vector<double>(scale.size(), 0.0);
  const size_t length = scale.size();
  if (length == 0) return std::nullopt;  // the mean of nothing
  for (size_t start = 0; start < y.size(); start += length) {
    double mean = 0, variance = 0;
    for (size_t k = 0; k < length; ++k) mean += y[start + k] / static_cast<double>(length);
    for (size_t k = 0; k < length; ++k)
      variance += (y[start + k] - mean) * (y[start + k] - mean) / static_cast<double>(length);
    const double inverse = 1 / std::sqrt(variance + node.get_float("epsilon"));
    for (size_t k = 0; k < length; ++k) y[start + k] = (y[start + k] - mean) * inverse * scale[k] + shift[k];
    means.push_back(mean), inverses.push_back(inverse);
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::vector<double>& values = i == 0 ? y : i == 1 ? means : inverses;
    const std::optional<Tensor> packed_values =
        packed(i == 0 ? x.data_type() : DataType::kFloat32, i == 0 ? x.shape() : output_shape(node, i), values);
    if (!packed_values) return std::nullopt;
    out.push_back(*packed_values);
  }
  return out;
}

}  // namespace octet::ir

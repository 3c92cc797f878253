#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/axes.h"
#include "ir/data_type_codes.h"
#include "onnx/fold_rules.h"

namespace octet::onnx {
namespace {

using ir::DataType;
using ir::MemoryBudget;
using ir::Shape;
using ir::Tensor;

constexpr int64_t kZero = -1;  // instead of a place

// The elements of x at these places, counted in row-major order.
Tensor picked(const Tensor& x, const Shape& shape, const std::vector<int64_t>& places, MemoryBudget& budget) {
  const size_t size = ir::data_type_size(x.data_type());
  budget.charge(static_cast<int64_t>(places.size() * size));
  std::vector<std::byte> bytes(places.size() * size, std::byte{0});
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] != kZero)
      std::memcpy(bytes.data() + i * size, x.bytes().data() + static_cast<size_t>(places[i]) * size, size);
  return Tensor(x.data_type(), shape, std::move(bytes));
}

int64_t in_range(int64_t index, int64_t size) {
  if (index < -size || index >= size) fail("index ", index, " is out of range for an axis of size ", size);
  return index < 0 ? index + size : index;
}

int64_t one_int(const FoldRequest& r, size_t index) {
  const std::vector<int64_t> values = int_input(r, index);
  if (values.size() != 1) fail("input ", index, " should hold one integer");
  return values[0];
}

}  // namespace

FoldedOutputs fold_trilu(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor& x = required(r, 0);
  if (x.shape().size() < 2) fail("its input should have two axes or more");
  const int64_t k = r.inputs.size() > 1 && r.inputs[1] ? one_int(r, 1) : 0;
  const bool upper = int_attribute(r, "upper", 1) != 0;
  const int64_t columns = x.shape().back(), rows = x.shape()[x.shape().size() - 2];
  budget.charge(8 * x.size());
  std::vector<int64_t> places(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t row = i / columns % rows, column = i % columns;
    const int64_t diagonal = column - row;
    places[static_cast<size_t>(i)] = (upper ? diagonal >= k : diagonal <= k) ? i : kZero;
  }
  return {{picked(x, x.shape(), places, budget)}};
}

FoldedOutputs fold_cumulative_sum(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor& x = required(r, 0);
  const size_t axis = ir::normal_axis(one_int(r, 1), x.shape().size());
  const bool exclusive = int_attribute(r, "exclusive", 0) != 0, reverse = int_attribute(r, "reverse", 0) != 0;
  const int64_t step = ir::row_major_strides(x.shape())[axis], length = x.shape()[axis];
  budget.charge(16 * x.size());
  // Integers as unsigned ones, so that what overflows wraps around.
  const auto add_up = [&](auto& values) {
    for (int64_t i = 0; i < x.size(); ++i) {
      if (i / step % length != 0) continue;  // only from the first element of a line
      typename std::decay_t<decltype(values)>::value_type sum = 0;
      for (int64_t k = 0; k < length; ++k) {
        auto& value = values[static_cast<size_t>(i + (reverse ? length - 1 - k : k) * step)];
        const auto own = value;
        value = exclusive ? sum : sum + own;
        sum += own;
      }
    }
  };
  std::optional<Tensor> out;
  if (ir::is_float(x.data_type())) {
    std::vector<double> values = ir::to_doubles(x);
    add_up(values);
    out = ir::packed(x.data_type(), x.shape(), values);
  } else if (x.data_type() == DataType::kInt64 || x.data_type() == DataType::kInt32) {
    std::vector<int64_t> values = x.to_ints();
    std::vector<uint64_t> wrapping(values.begin(), values.end());
    add_up(wrapping);
    values.assign(wrapping.begin(), wrapping.end());
    out = ir::packed(x.data_type(), x.shape(), values);
  }
  return out ? FoldedOutputs({*out}) : std::nullopt;
}

FoldedOutputs fold_gather_elements(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor &x = required(r, 0), &at = required(r, 1);
  const size_t axis = ir::normal_axis(int_attribute(r, "axis", 0), x.shape().size());
  if (at.shape().size() != x.shape().size()) fail("data and indices should have one rank");
  for (size_t d = 0; d < at.shape().size(); ++d)
    if (d != axis && at.shape()[d] > x.shape()[d]) fail("the indices are larger than the data along axis ", d);
  const std::vector<int64_t> indices = int_input(r, 1), strides = ir::row_major_strides(x.shape());
  budget.charge(16 * at.size());
  std::vector<int64_t> places;
  ir::for_each_index(at.shape(), [&](const std::vector<int64_t>& index) {
    int64_t place = 0;
    for (size_t d = 0; d < index.size(); ++d)
      place += (d == axis ? in_range(indices[places.size()], x.shape()[d]) : index[d]) * strides[d];
    places.push_back(place);
  });
  return {{picked(x, at.shape(), places, budget)}};
}

FoldedOutputs fold_gather_nd(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor &x = required(r, 0), &at = required(r, 1);
  const int64_t batch = int_attribute(r, "batch_dims", 0);
  if (at.shape().empty()) fail("the indices should have an axis");
  const int64_t named = at.shape().back(), rank = static_cast<int64_t>(x.shape().size());
  if (batch < 0 || named < 1 || batch + named > rank || batch >= static_cast<int64_t>(at.shape().size()))
    fail("indices ", ir::shape_string(at.shape()), " do not fit data ", ir::shape_string(x.shape()));
  for (int64_t d = 0; d < batch; ++d)
    if (at.shape()[static_cast<size_t>(d)] != x.shape()[static_cast<size_t>(d)])
      fail("indices ", ir::shape_string(at.shape()), " do not fit data ", ir::shape_string(x.shape()));
  const std::vector<int64_t> indices = int_input(r, 1), strides = ir::row_major_strides(x.shape());
  Shape shape(at.shape().begin(), at.shape().end() - 1), row(x.shape().begin() + batch + named, x.shape().end());
  const int64_t tuples = ir::element_count(shape), length = ir::element_count(row);
  shape.insert(shape.end(), row.begin(), row.end());
  budget.charge(8 * ir::bounded_count(shape));
  int64_t per_batch = 1;  // tuples of one index of the batch axes
  for (size_t d = static_cast<size_t>(batch); d + 1 < at.shape().size(); ++d) per_batch *= at.shape()[d];
  std::vector<int64_t> places;
  for (int64_t t = 0; t < tuples; ++t) {
    const int64_t in_batch = batch == 0 ? 0 : t / per_batch * strides[static_cast<size_t>(batch - 1)];
    int64_t place = in_batch;
    for (int64_t k = 0; k < named; ++k) {
      const auto axis = static_cast<size_t>(batch + k);
      place += in_range(indices[static_cast<size_t>(t * named + k)], x.shape()[axis]) * strides[axis];
    }
    for (int64_t i = 0; i < length; ++i) places.push_back(place + i);
  }
  return {{picked(x, shape, places, budget)}};
}

FoldedOutputs fold_non_zero(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor& x = required(r, 0);
  if (!ir::is_integer(x.data_type()) && !ir::is_float(x.data_type())) return std::nullopt;
  const std::vector<double> values = ir::to_doubles(x);
  const size_t rank = std::max<size_t>(x.shape().size(), 1);
  budget.charge(8 * x.size() * static_cast<int64_t>(rank + 1));
  std::vector<std::vector<int64_t>> found(rank);
  size_t i = 0;
  ir::for_each_index(x.shape(), [&](const std::vector<int64_t>& index) {
    if (values[i++] == 0) return;
    if (index.empty()) found[0].push_back(0);
    for (size_t d = 0; d < index.size(); ++d) found[d].push_back(index[d]);
  });
  std::vector<int64_t> all;
  for (const auto& of_axis : found) all.insert(all.end(), of_axis.begin(), of_axis.end());
  return {{Tensor::of<int64_t>({static_cast<int64_t>(rank), static_cast<int64_t>(found[0].size())}, all)}};
}

FoldedOutputs fold_one_hot(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor &at = required(r, 0), &values = required(r, 2);
  if (required(r, 1).size() != 1 || values.size() != 2) fail("expected one depth and two values");
  const int64_t depth = ir::saturated(ir::to_doubles(required(r, 1))[0]);
  if (depth < 1 || (!ir::is_integer(at.data_type()) && !ir::is_float(at.data_type()))) return std::nullopt;
  const int64_t rank = static_cast<int64_t>(at.shape().size());
  const size_t axis = ir::normal_axis(int_attribute(r, "axis", -1), static_cast<size_t>(rank + 1));
  Shape shape = at.shape();
  shape.insert(shape.begin() + static_cast<int64_t>(axis), depth);
  budget.charge(8 * ir::bounded_count(shape));
  const std::vector<double> indices = ir::to_doubles(at);
  const int64_t behind = ir::row_major_strides(shape)[axis];
  std::vector<int64_t> places(static_cast<size_t>(ir::element_count(shape)), 0);  // of the value for "off"
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t index = ir::saturated(indices[i]), line = static_cast<int64_t>(i);
    if (index < -depth || index >= depth) continue;
    const int64_t place = line / behind * behind * depth + (index < 0 ? index + depth : index) * behind + line % behind;
    places[static_cast<size_t>(place)] = 1;
  }
  return {{picked(values, shape, places, budget)}};
}

FoldedOutputs fold_eye_like(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor& x = required(r, 0);
  if (x.shape().size() != 2) fail("its input should have two axes");
  const int64_t k = int_attribute(r, "k", 0);
  const DataType type =
      r.attributes.count("dtype") ? ir::data_type_from_onnx(int_attribute(r, "dtype", 1)) : x.data_type();
  budget.charge(8 * x.size());
  std::vector<int64_t> values(static_cast<size_t>(x.size()), 0);
  for (int64_t i = 0; i < x.size(); ++i)
    values[static_cast<size_t>(i)] = i % x.shape()[1] - i / x.shape()[1] == k ? 1 : 0;
  const auto out = ir::packed(type, x.shape(), values);
  return out ? FoldedOutputs({*out}) : std::nullopt;
}

FoldedOutputs fold_is_nan(const FoldRequest& r, MemoryBudget& budget) {
  const Tensor& x = required(r, 0);
  if (!ir::is_float(x.data_type())) return std::nullopt;
  budget.charge(9 * x.size());
  std::vector<int64_t> values;
  for (const double v : ir::to_doubles(x)) values.push_back(std::isnan(v) ? 1 : 0);
  const auto out = ir::packed(DataType::kBool, x.shape(), values);
  return out ? FoldedOutputs({*out}) : std::nullopt;
}

}  // namespace octet::onnx

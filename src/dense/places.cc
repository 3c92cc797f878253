#include "dense/places.h"

#include "dense/operators.h"

namespace octet::dense {

int64_t normal_index(int64_t index, int64_t length) {
  require(index >= -length && index < length, "the index ", index, " is outside an axis of size ", length);
  return index < 0 ? index + length : index;
}

Slots slots_of(const Shape& data, const Shape& indices, const std::vector<int64_t>& values, size_t batch_axes) {
  require(!indices.empty(), "the indices have no axis");
  const auto tuple = static_cast<size_t>(indices.back());
  require(batch_axes < indices.size() && batch_axes + tuple <= data.size(), "the indices ", shape_text(indices),
          " do not fit ", shape_text(data));
  for (size_t i = 0; i < batch_axes; ++i)
    require(data[i] == indices[i], "the indices ", shape_text(indices), " do not fit ", shape_text(data));
  Slots out;
  out.axes = batch_axes + tuple;
  out.size = count_of(data, out.axes, data.size());
  const Shape steps = steps_of(data);
  const int64_t rows = count_of(indices, 0, indices.size() - 1);
  const int64_t in_batch = count_of(indices, batch_axes, indices.size() - 1);
  const int64_t batch_step = count_of(data, batch_axes, data.size());
  out.first.reserve(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    int64_t at = r / in_batch * batch_step;
    for (size_t k = 0; k < tuple; ++k)
      at += steps[batch_axes + k] * normal_index(values[static_cast<size_t>(r) * tuple + k], data[batch_axes + k]);
    out.first.push_back(at);
  }
  return out;
}

}  // namespace octet::dense

// Constants that stand for shape arithmetic on dynamic sizes. Each function sees an operator in several lanes (see
// builder.h): input shapes, output shapes and the computed parameter, which differs from lane to lane, and finds the
// one constant with the same effect in all of them. Nothing is returned when there is none.
#pragma once
#include <optional>
#include <vector>

#include "ir/tensor.h"

namespace octet::onnx {

struct LaneView {
  ir::Shape in, out;               // static
  std::vector<int64_t> parameter;  // target, starts, ends or sizes, as the file computes it
};
using LaneViews = std::vector<LaneView>;

// A Reshape target (allowzero = 0).
std::optional<std::vector<int64_t>> settle_reshape(const LaneViews& lanes);
// An Expand target.
std::optional<std::vector<int64_t>> settle_expand(const LaneViews& lanes);
// starts or ends of a Slice along `axes` (normalized).
std::optional<std::vector<int64_t>> settle_slice_bound(const LaneViews& lanes, const std::vector<int64_t>& axes);
// Scales of a Resize, one an axis, that give exactly the sizes of every lane.
std::optional<std::vector<float>> settle_resize(const LaneViews& lanes);

}  // namespace octet::onnx

#include "onnx/settle.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace octet::onnx {
namespace {

// The value that `f` has in every lane, if it is the same.
template <typename F>
auto common(const LaneViews& lanes, F f) -> std::optional<decltype(f(lanes.front()))> {
  const auto first = f(lanes.front());
  for (const LaneView& lane : lanes)
    if (f(lane) != first) return std::nullopt;
  return first;
}

bool same_lengths(const LaneViews& lanes) {
  return common(lanes, [](const LaneView& l) { return l.in.size(); }) &&
         common(lanes, [](const LaneView& l) { return l.out.size(); }) &&
         common(lanes, [](const LaneView& l) { return l.parameter.size(); });
}

}  // namespace

std::optional<std::vector<int64_t>> settle_reshape(const LaneViews& lanes) {
  if (!same_lengths(lanes) || lanes.front().out.size() != lanes.front().parameter.size()) return std::nullopt;
  const size_t rank = lanes.front().out.size();
  std::vector<int64_t> target(rank);
  std::optional<size_t> computed;
  std::vector<size_t> open;
  for (size_t i = 0; i < rank; ++i) {
    const auto stated = common(lanes, [&](const LaneView& l) { return l.parameter[i]; });
    if (stated) {
      target[i] = *stated;
      if (*stated == -1) computed = i;
    } else if (i < lanes.front().in.size() &&
               std::all_of(lanes.begin(), lanes.end(), [&](const LaneView& l) { return l.in[i] == l.out[i]; })) {
      target[i] = 0;
    } else {
      open.push_back(i);
    }
  }
  if (open.empty()) return target;
  if (open.size() > 1) return std::nullopt;
  if (computed) {  // there is only one -1: a size that is the same everywhere can be written out instead
    const auto size = common(lanes, [&](const LaneView& l) { return l.out[*computed]; });
    if (!size || *size == 0) return std::nullopt;
    target[*computed] = *size;
  }
  target[open.front()] = -1;
  return target;
}

std::optional<std::vector<int64_t>> settle_expand(const LaneViews& lanes) {
  if (!same_lengths(lanes)) return std::nullopt;
  const size_t in = lanes.front().in.size(), out = lanes.front().out.size();
  std::vector<int64_t> target(out);
  for (size_t i = 0; i < out; ++i) {
    const size_t extra = out - in;
    if (const auto size = common(lanes, [&](const LaneView& l) { return l.out[i]; })) {
      target[i] = *size;
    } else if (i >= extra && std::all_of(lanes.begin(), lanes.end(),
                                         [&](const LaneView& l) { return l.in[i - extra] == l.out[i]; })) {
      target[i] = 1;  // keeps the size that the data has
    } else {
      return std::nullopt;
    }
  }
  return target;
}

std::optional<std::vector<int64_t>> settle_slice_bound(const LaneViews& lanes, const std::vector<int64_t>& axes) {
  if (!same_lengths(lanes) || lanes.front().parameter.size() != axes.size()) return std::nullopt;
  std::vector<int64_t> bounds(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    constexpr int64_t kFar = int64_t{1} << 60;  // keeps the difference inside int64
    const auto from_end = [&](const LaneView& l) { return std::clamp(l.parameter[i], -kFar, kFar) - l.in[axis]; };
    if (const auto stated = common(lanes, [&](const LaneView& l) { return l.parameter[i]; })) {
      bounds[i] = *stated;
    } else if (std::all_of(lanes.begin(), lanes.end(), [&](const LaneView& l) { return from_end(l) >= 0; })) {
      bounds[i] = std::numeric_limits<int64_t>::max();
    } else if (const auto distance = common(lanes, from_end); distance && lanes.front().parameter[i] >= 0) {
      bounds[i] = *distance;
    } else {
      return std::nullopt;
    }
  }
  return bounds;
}

std::optional<std::vector<float>> settle_resize(const LaneViews& lanes) {
  if (!same_lengths(lanes) || lanes.front().in.size() != lanes.front().out.size()) return std::nullopt;
  std::vector<float> scales(lanes.front().in.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    if (std::any_of(lanes.begin(), lanes.end(), [&](const LaneView& l) { return l.in[i] == 0; })) return std::nullopt;
    const auto scale =
        common(lanes, [&](const LaneView& l) { return static_cast<float>(l.out[i]) / static_cast<float>(l.in[i]); });
    if (!scale) return std::nullopt;
    for (const LaneView& l : lanes)
      if (std::floor(static_cast<double>(l.in[i]) * *scale) != static_cast<double>(l.out[i]) ||
          std::floor(static_cast<float>(l.in[i]) * *scale) != static_cast<float>(l.out[i]))
        return std::nullopt;
    scales[i] = *scale;
  }
  return scales;
}

}  // namespace octet::onnx

// Shape rules of nodes that change how far an axis reaches: Split, Slice, Pad, Resize. Their parameters are inputs.
#include <algorithm>
#include <cmath>

#include "ir/shape_rule_util.h"
#include "ir/shape_rules.h"

namespace octet::ir {
namespace {

// Number of elements that x[start:end:step] has, as numpy counts.
int64_t slice_length(int64_t size, int64_t start, int64_t end, int64_t step) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  // Far below or above the axis means its border; clamping first keeps start + size inside int64.
  const auto place = [&](int64_t v) {
    v = std::clamp(v, -2 * kMaxDimension, 2 * kMaxDimension);
    return std::clamp(v < 0 ? v + size : v, low, high);
  };
  const int64_t from = place(start), to = place(end);
  step = std::clamp(step, -2 * kMaxDimension, 2 * kMaxDimension);
  const int64_t length = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
  return std::max<int64_t>(length, 0);
}

int64_t resized(const Node& node, int64_t size, double scale) {
  if (size == kDynamic) return kDynamic;
  const double out = std::floor(static_cast<double>(size) * scale);
  if (!(out >= 0 && out <= static_cast<double>(kMaxDimension))) misfit(node, "scale ", scale, " is impossible");
  return static_cast<int64_t>(out);
}

// Scales and sizes that keep the aspect ratio: one factor for all axes, the smallest or largest of those asked for.
Shape keep_aspect_ratio(const Node& node, const Shape& x, const std::vector<size_t>& axes,
                        const std::vector<int64_t>& sizes, const std::string& policy) {
  Shape out = x;
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (x[axes[i]] == kDynamic || x[axes[i]] == 0) {
      for (const size_t axis : axes) out[axis] = kDynamic;
      return out;
    }
    const double s = static_cast<double>(sizes[i]) / static_cast<double>(x[axes[i]]);
    if (i == 0)
      scale = s;
    else
      scale = policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
  }
  for (const size_t axis : axes) {
    const double size = std::round(scale * static_cast<double>(x[axis]));
    if (size > static_cast<double>(kMaxDimension)) misfit(node, "axis ", axis, " would be resized to ", size);
    out[axis] = static_cast<int64_t>(size);
  }
  return out;
}

}  // namespace

void infer_split(Node& node) {
  const Shape* x = input_shape(node, 0);
  const size_t count = node.outputs.size();
  if (count == 0) misfit(node, "has no outputs");
  if (node.has("num_outputs") && node.get_int("num_outputs") != static_cast<int64_t>(count))
    misfit(node, "num_outputs is ", node.get_int("num_outputs"), ", but there are ", count, " outputs");
  if (!x) {
    for (size_t i = 0; i < count; ++i) set_output(node, i, input_data_type(node, 0), std::nullopt);
    return;
  }
  const size_t axis = normal_axis(node, node.get_int("axis", 0), x->size());
  const int64_t size = (*x)[axis], parts = static_cast<int64_t>(count);
  std::vector<int64_t> sizes(count, kDynamic);
  if (const auto stated = constant_ints(node, 1)) {
    if (stated->size() != count) misfit(node, stated->size(), " sizes for ", count, " outputs");
    sizes = *stated;
    int64_t sum = 0;
    for (const int64_t s : sizes) {
      if (s < 0) misfit(node, "split holds ", s);
      sum = add_dims(node, sum, s);
    }
    if (size != kDynamic && sum != size)
      misfit(node, "split ", shape_string(sizes), " sums to ", sum, ", but axis ", axis, " of ", input_text(node, 0),
             " has ", size, " elements");
  } else if (!node.has_input(1) && size != kDynamic) {
    const int64_t chunk = (size + parts - 1) / parts;  // the last part may be smaller
    if (chunk * (parts - 1) > size || (!node.has("num_outputs") && size % parts != 0))
      misfit(node, "axis ", axis, " of ", input_text(node, 0), " cannot be split into ", count, " equal parts");
    sizes.assign(count, chunk);
    sizes.back() = size - chunk * (parts - 1);
  }
  for (size_t i = 0; i < count; ++i) {
    Shape out = *x;
    out[axis] = sizes[i];
    set_output(node, i, input_data_type(node, 0), out);
  }
}

void infer_slice(Node& node) {
  const Shape* x = input_shape(node, 0);
  if (!x) return set_unknown(node);
  const auto starts = constant_ints(node, 1), ends = constant_ints(node, 2), axes = constant_ints(node, 3),
             steps = constant_ints(node, 4);
  if (node.has_input(3) && !axes)  // any axis may change
    return set_output(node, 0, input_data_type(node, 0), Shape(x->size(), kDynamic));
  size_t count = x->size();
  for (const auto& given : {starts, ends, axes, steps})
    if (given) count = given->size();
  for (const auto& given : {starts, ends, axes, steps})
    if (given && given->size() != count) misfit(node, "starts, ends, axes and steps have different lengths");
  if (count > x->size()) misfit(node, count, " slices for ", input_text(node, 0));
  const bool known = starts && ends && (steps || !node.has_input(4));
  const std::vector<size_t> normal = normal_axes(node, axes ? *axes : all_axes(count), x->size());
  Shape out = *x;
  for (size_t i = 0; i < count; ++i) {
    int64_t& size = out[normal[i]];
    const int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) misfit(node, "step 0 along axis ", normal[i]);
    size = known && size != kDynamic ? slice_length(size, (*starts)[i], (*ends)[i], step) : kDynamic;
  }
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_pad(Node& node) {
  const std::string mode = node.get_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    misfit(node, "mode is '", mode, "', expected constant, reflect, edge or wrap");
  const Shape* x = input_shape(node, 0);
  if (!x) return set_unknown(node);
  const auto pads = constant_ints(node, 1), axes = constant_ints(node, 3);
  if (!pads || (node.has_input(3) && !axes))
    return set_output(node, 0, input_data_type(node, 0), Shape(x->size(), kDynamic));
  const std::vector<size_t> normal = normal_axes(node, axes ? *axes : all_axes(x->size()), x->size());
  if (pads->size() != 2 * normal.size())
    misfit(node, input_text(node, 1), " holds ", pads->size(), " numbers, expected ", 2 * normal.size());
  Shape out = *x;
  for (size_t i = 0; i < normal.size(); ++i) {
    const int64_t begin = (*pads)[i], end = (*pads)[i + normal.size()];
    for (const int64_t v : {begin, end})
      if (v < -kMaxDimension || v > kMaxDimension) misfit(node, input_text(node, 1), " holds ", v);
    int64_t& size = out[normal[i]];
    if (size == kDynamic) continue;
    const int64_t before = size;
    size = before + begin + end;
    if (size < 0)
      misfit(node, "padding ", begin, " and ", end, " removes more than axis ", normal[i], " has: ", before);
  }
  set_output(node, 0, input_data_type(node, 0), out);
}

void infer_resize(Node& node) {
  const Shape* x = input_shape(node, 0);
  if (!x) return set_unknown(node);
  std::vector<int64_t> stated = node.get_ints("axes");
  const std::vector<size_t> axes = normal_axes(node, stated.empty() ? all_axes(x->size()) : stated, x->size());
  if (has_value(node, 2) && has_value(node, 3)) misfit(node, "has both scales and sizes, expected one of them");
  Shape out = *x;
  if (has_value(node, 3)) {
    const auto sizes = constant_ints(node, 3);
    if (sizes && sizes->size() != axes.size())
      misfit(node, "sizes has ", sizes->size(), " values, expected ", axes.size());
    for (size_t i = 0; sizes && i < axes.size(); ++i)
      if ((*sizes)[i] < 0 || (*sizes)[i] > kMaxDimension) misfit(node, "sizes holds ", (*sizes)[i]);
    for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = sizes ? (*sizes)[i] : kDynamic;
    const std::string policy = node.get_string("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
      misfit(node, "keep_aspect_ratio_policy is '", policy, "', expected stretch, not_larger or not_smaller");
    if (sizes && policy != "stretch") out = keep_aspect_ratio(node, *x, axes, *sizes, policy);
  } else if (has_value(node, 2)) {
    const auto scales = constant_floats(node, 2);
    if (scales && scales->size() != axes.size())
      misfit(node, "scales has ", scales->size(), " values, expected ", axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (scales && !((*scales)[i] > 0)) misfit(node, "scales holds ", (*scales)[i], ", expected a positive number");
      out[axes[i]] = scales ? resized(node, (*x)[axes[i]], (*scales)[i]) : kDynamic;
    }
  } else {
    misfit(node, "has neither scales nor sizes");
  }
  set_output(node, 0, input_data_type(node, 0), out);
}

}  // namespace octet::ir

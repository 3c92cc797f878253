// Shape rules of convolutions and pooling.
#include <algorithm>

#include "base/window.h"
#include "ir/infer.h"
#include "ir/shape_rule_util.h"
#include "ir/shape_rules.h"

namespace octet::ir {
namespace {

// Keeps (kernel - 1) * dilation and (input - 1) * stride inside int64.
constexpr int64_t kMaxWindowParameter = int64_t{1} << 20;

std::vector<int64_t> window_ints(const Node& node, const char* key, size_t count, int64_t fallback, int64_t least) {
  std::vector<int64_t> out = node.get_ints(key, std::vector<int64_t>(count, fallback));
  if (out.size() != count) misfit(node, key, " has ", out.size(), " values, expected ", count);
  for (const int64_t v : out)
    if (v < least || v > kMaxWindowParameter)
      misfit(node, key, " holds ", v, ", expected ", least, " to ", kMaxWindowParameter);
  return out;
}

bool same_padding(const Node& node) {
  const std::string mode = node.get_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") return true;
  if (mode != "NOTSET" && mode != "VALID" && !mode.empty())
    misfit(node, "auto_pad is '", mode, "', expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  return false;
}

void check_kernel(const Node& node, const std::vector<int64_t>& kernel) {
  for (const int64_t k : kernel)
    if (k < 1 || k > kMaxWindowParameter) misfit(node, "kernel ", shape_string(kernel), " has an impossible size");
}

// Output sizes of all spatial axes.
Shape window_outputs(const Node& node, const Shape& spatial, const std::vector<int64_t>& kernel, bool ceil_mode) {
  const bool same = same_padding(node);
  // Padding of a dynamic axis cannot be completed yet; geometry on a size that needs none stands in for it.
  Shape known = spatial;
  const std::vector<int64_t> strides = window_ints(node, "strides", spatial.size(), 1, 1);
  if (same)
    for (size_t i = 0; i < known.size(); ++i)
      if (known[i] == kDynamic && strides[i] > 1) known[i] = 1;
  const WindowGeometry g = window_geometry(node, known, kernel);
  Shape out;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t begin = g.pads[i], end = g.pads[i + spatial.size()];
    const int64_t extent = (g.kernel[i] - 1) * g.dilations[i] + 1;
    if (spatial[i] != kDynamic && spatial[i] + begin + end < extent)
      misfit(node, "a window of ", extent, " does not fit into ", spatial[i], " + ", begin + end, " (padding) of ",
             input_text(node, 0));
    out.push_back(window_output(spatial[i], g.kernel[i], g.strides[i], g.dilations[i], begin, end, ceil_mode));
  }
  return out;
}

// Kernel size of a convolution: that of the weights, which kernel_shape must repeat.
std::optional<std::vector<int64_t>> conv_kernel(const Node& node, size_t spatial_rank) {
  const Shape* w = input_shape(node, 1);
  std::vector<int64_t> stated = node.get_ints("kernel_shape");
  if (!stated.empty() && stated.size() != spatial_rank)
    misfit(node, "kernel_shape has ", stated.size(), " values, expected ", spatial_rank, " for ", input_text(node, 0));
  if (w) {
    if (w->size() != spatial_rank + 2)
      misfit(node, input_text(node, 1), " has rank ", w->size(), ", expected ", spatial_rank + 2, " as ",
             input_text(node, 0));
    if (std::ranges::count(*w, 0) > 0) misfit(node, input_text(node, 1), " has no elements");
    std::vector<int64_t> kernel(w->begin() + 2, w->end());
    for (size_t i = 0; i < kernel.size() && !stated.empty(); ++i) {
      if (kernel[i] == kDynamic) kernel[i] = stated[i];
      if (kernel[i] != stated[i])
        misfit(node, "kernel_shape ", shape_string(stated), " does not agree with ", input_text(node, 1));
    }
    if (is_static(kernel)) stated = kernel;
  }
  if (stated.empty()) return std::nullopt;
  check_kernel(node, stated);
  return stated;
}

int64_t checked_group(const Node& node) {
  const int64_t group = node.get_int("group", 1);
  if (group < 1 || group > kMaxDimension) misfit(node, "group is ", group, ", expected 1 or more");
  return group;
}

int64_t transposed_output(const Node& node, int64_t input, int64_t kernel, int64_t stride, int64_t dilation,
                          int64_t pads, int64_t output_padding) {
  if (input == kDynamic) return kDynamic;
  const int64_t out = stride * (input - 1) + output_padding + (kernel - 1) * dilation + 1 - pads;
  if (out < 1 || input < 1) misfit(node, input_text(node, 0), " gives an output of ", out, " elements");
  return out;
}

void set_window_output(Node& node, const Shape& x, int64_t channels, const std::optional<Shape>& spatial) {
  Shape out = {x[0], channels};
  if (spatial)
    out.insert(out.end(), spatial->begin(), spatial->end());
  else
    out.resize(x.size(), kDynamic);
  set_output(node, 0, input_data_type(node, 0), out);
}

// The mean and the largest element of nothing are undefined.
void check_windows(const Node& node, const Shape& spatial, const std::vector<int64_t>& kernel, const Shape& outputs) {
  if (!is_static(spatial)) return;
  const WindowGeometry g = window_geometry(node, spatial, kernel);
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t outside =
        first_window_outside(outputs[i], g.kernel[i], g.strides[i], g.dilations[i], g.pads[i], spatial[i]);
    if (outside >= 0)
      misfit(node, "window ", outside, " along spatial axis ", i, " has no element of ", input_text(node, 0),
             ": all of its ", g.kernel[i], " (dilation ", g.dilations[i], ") lie in the padding of ", g.pads[i],
             " or behind the end; give the pool less padding or dilation");
  }
}

}  // namespace

int64_t window_output(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin,
                      int64_t pad_end, bool ceil_mode) {
  if (input == kDynamic) return kDynamic;
  const int64_t room = input + pad_begin + pad_end - ((kernel - 1) * dilation + 1);
  require(room >= 0, "a window of ", (kernel - 1) * dilation + 1, " does not fit into an axis of ", input,
          " with padding ", pad_begin, " and ", pad_end);
  int64_t out = (ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
  if (ceil_mode && (out - 1) * stride >= input + pad_begin) --out;
  return out;
}

WindowGeometry window_geometry(const Node& node, const std::vector<int64_t>& input_spatial,
                               const std::vector<int64_t>& kernel_spatial) {
  const size_t n = input_spatial.size();
  OCTET_CHECK(kernel_spatial.size() == n, node_text(node), ": kernel of ", kernel_spatial.size(), " axes, not ", n);
  check_kernel(node, kernel_spatial);
  WindowGeometry g;
  g.kernel = kernel_spatial;
  g.strides = window_ints(node, "strides", n, 1, 1);
  g.dilations = window_ints(node, "dilations", n, 1, 1);
  const bool same = same_padding(node);
  if (!same && node.get_string("auto_pad", "NOTSET") != "VALID") {
    g.pads = window_ints(node, "pads", 2 * n, 0, 0);
    return g;
  }
  g.pads.assign(2 * n, 0);
  if (!same) return g;
  const bool upper = node.get_string("auto_pad") == "SAME_UPPER";
  for (size_t i = 0; i < n; ++i) {
    const int64_t extent = (g.kernel[i] - 1) * g.dilations[i] + 1, in = input_spatial[i], stride = g.strides[i];
    int64_t total = extent - 1;
    if (in == kDynamic && stride > 1)
      misfit(node, "auto_pad with stride ", stride, " needs the size of spatial axis ", i,
             ", which is dynamic; give the model a fixed input size");
    if (in != kDynamic) total = std::max<int64_t>(((in + stride - 1) / stride - 1) * stride + extent - in, 0);
    g.pads[i] = upper ? total / 2 : total - total / 2;
    g.pads[i + n] = total - g.pads[i];
  }
  return g;
}

void infer_conv(Node& node) {
  require_rank(node, 0, 3, 5);
  require_same_data_type(node, 0, 1);
  const int64_t group = checked_group(node);
  const Shape *x = input_shape(node, 0), *w = input_shape(node, 1);
  if (!x) return set_output(node, 0, input_data_type(node, 0), std::nullopt);
  const auto kernel = conv_kernel(node, x->size() - 2);
  int64_t filters = kDynamic;
  if (w) {
    filters = (*w)[0];
    const int64_t expected = multiply_dims(node, (*w)[1], group);
    if (expected != kDynamic && (*x)[1] != kDynamic && expected != (*x)[1])
      misfit(node, input_text(node, 0), " has ", (*x)[1], " channels, but ", input_text(node, 1), " with group ", group,
             " takes ", expected);
    if (filters != kDynamic && filters % group != 0)
      misfit(node, input_text(node, 1), ": ", filters, " filters cannot be divided into ", group, " groups");
  }
  require_shape(node, 2, {filters}, "one bias a filter");
  std::optional<Shape> spatial;
  if (kernel) spatial = window_outputs(node, {x->begin() + 2, x->end()}, *kernel, false);
  set_window_output(node, *x, filters, spatial);
}

void infer_conv_transpose(Node& node) {
  require_rank(node, 0, 3, 5);
  require_same_data_type(node, 0, 1);
  const int64_t group = checked_group(node);
  const Shape *x = input_shape(node, 0), *w = input_shape(node, 1);
  if (!x) return set_output(node, 0, input_data_type(node, 0), std::nullopt);
  const size_t n = x->size() - 2;
  const auto kernel = conv_kernel(node, n);
  int64_t filters = kDynamic;
  if (w) {
    if ((*w)[0] != kDynamic && (*x)[1] != kDynamic && (*w)[0] != (*x)[1])
      misfit(node, input_text(node, 0), " has ", (*x)[1], " channels, but ", input_text(node, 1), " takes ", (*w)[0]);
    if ((*w)[0] != kDynamic && (*w)[0] % group != 0)
      misfit(node, input_text(node, 1), ": ", (*w)[0], " channels cannot be divided into ", group, " groups");
    filters = multiply_dims(node, (*w)[1], group);
  }
  require_shape(node, 2, {filters}, "one bias a filter");
  // Also where the size of the output is stated: they say which pixels meet.
  const std::vector<int64_t> strides = window_ints(node, "strides", n, 1, 1);
  const std::vector<int64_t> dilations = window_ints(node, "dilations", n, 1, 1);
  const std::vector<int64_t> extra = window_ints(node, "output_padding", n, 0, 0);
  std::vector<int64_t> pads = window_ints(node, "pads", 2 * n, 0, 0);
  const bool same = same_padding(node);
  if (same || node.get_string("auto_pad", "NOTSET") == "VALID") pads.assign(2 * n, 0);
  std::optional<Shape> spatial;
  const std::vector<int64_t> stated = node.get_ints("output_shape");
  if (!stated.empty()) {
    if (stated.size() != n) misfit(node, "output_shape has ", stated.size(), " values, expected ", n);
    for (const int64_t d : stated)
      if (d < 1) misfit(node, "output_shape holds ", d, ", expected 1 or more");
    spatial = stated;
  } else if (kernel) {
    spatial.emplace();
    for (size_t i = 0; i < n; ++i) {
      const int64_t in = (*x)[i + 2];
      spatial->push_back(
          same ? multiply_dims(node, in, strides[i])
               : transposed_output(node, in, (*kernel)[i], strides[i], dilations[i], pads[i] + pads[i + n], extra[i]));
    }
  }
  set_window_output(node, *x, filters, spatial);
}

void infer_pool(Node& node) {
  require_rank(node, 0, 3, 5);
  const Shape* x = input_shape(node, 0);
  if (!x) return set_output(node, 0, input_data_type(node, 0), std::nullopt);
  const size_t n = x->size() - 2;
  const std::vector<int64_t> kernel = node.get_ints("kernel_shape");
  if (kernel.size() != n)
    misfit(node, "kernel_shape has ", kernel.size(), " values, expected ", n, " for ", input_text(node, 0));
  check_kernel(node, kernel);
  if (!same_padding(node)) {
    const std::vector<int64_t> pads = window_ints(node, "pads", 2 * n, 0, 0);
    const std::vector<int64_t> dilations = window_ints(node, "dilations", n, 1, 1);
    for (size_t i = 0; i < 2 * n; ++i)  // else a window could lie in the padding alone
      if (pads[i] > (kernel[i % n] - 1) * dilations[i % n])
        misfit(node, "padding ", pads[i], " is not smaller than the window of ",
               (kernel[i % n] - 1) * dilations[i % n] + 1);
  }
  const Shape spatial(x->begin() + 2, x->end());
  const Shape outputs = window_outputs(node, spatial, kernel, node.get_int("ceil_mode") != 0);
  check_windows(node, spatial, kernel, outputs);
  set_window_output(node, *x, (*x)[1], outputs);
}

void infer_global_pool(Node& node) {
  require_rank(node, 0, 3, 5);
  const Shape* x = input_shape(node, 0);
  if (!x) return set_output(node, 0, input_data_type(node, 0), std::nullopt);
  set_window_output(node, *x, (*x)[1], Shape(x->size() - 2, 1));
}

}  // namespace octet::ir

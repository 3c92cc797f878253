// Resize. Every mode is a sum of a few taps along each axis (1 for nearest, 2 for linear, 4 for cubic), computed from
// the formulas of the ONNX specification; the two usual forms of linear go to LibTorch's faster kernels.
#include <algorithm>
#include <cmath>

#include "train/ops_common.h"

namespace octet::train {
namespace {

struct Axis {
  int64_t in, out;
  double scale;
};

double source_position(const Axis& a, int64_t i, const std::string& transform) {
  const double x = static_cast<double>(i), out = static_cast<double>(a.out), in = static_cast<double>(a.in);
  if (transform == "asymmetric") return x / a.scale;
  if (transform == "align_corners") return a.out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (transform == "pytorch_half_pixel" && a.out == 1) return 0;
  if (transform == "half_pixel_symmetric") {
    const double adjustment = out / (a.scale * in), center = in / 2;
    return center * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  return (x + 0.5) / a.scale - 0.5;
}

double nearest(double x, const std::string& mode) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

// Taps of one output element: weights[k] of source element indices[k], clamped to the border.
struct Taps {
  std::vector<std::vector<int64_t>> indices;  // [tap][output element]
  std::vector<std::vector<float>> weights;
};

Taps make_taps(const Axis& a, const std::string& mode, const std::string& transform, const std::string& nearest_mode,
               double cubic_a) {
  const int64_t first = mode == "cubic" ? -1 : 0, count = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  Taps taps{std::vector<std::vector<int64_t>>(count), std::vector<std::vector<float>>(count)};
  for (int64_t i = 0; i < a.out; ++i) {
    const double x = source_position(a, i, transform);
    const double base = mode == "nearest" ? nearest(x, nearest_mode) : std::floor(x);
    for (int64_t k = 0; k < count; ++k) {
      const double distance = std::abs(x - (base + static_cast<double>(first + k)));
      double weight = 1;
      if (mode == "linear") weight = 1 - distance;
      if (mode == "cubic") {
        const double d = distance;
        weight = d <= 1 ? ((cubic_a + 2) * d - (cubic_a + 3)) * d * d + 1
                        : ((cubic_a * d - 5 * cubic_a) * d + 8 * cubic_a) * d - 4 * cubic_a;
      }
      taps.indices[k].push_back(std::clamp<int64_t>(static_cast<int64_t>(base) + first + k, 0, a.in - 1));
      taps.weights[k].push_back(static_cast<float>(weight));
    }
  }
  return taps;
}

at::Tensor resample(const at::Tensor& x, int64_t axis, const Taps& taps) {
  at::Tensor y;
  for (size_t k = 0; k < taps.indices.size(); ++k) {
    at::Tensor part =
        at::index_select(x, axis, at::tensor(taps.indices[k], at::TensorOptions().dtype(at::kLong)).to(x.device()));
    if (taps.indices.size() > 1) part = part * along_axis(at::tensor(taps.weights[k]).to(x.options()), axis, x.dim());
    y = y.defined() ? y + part : part;
  }
  return y;
}

void require_known(const ir::Node& node, const char* attribute, const std::vector<std::string>& known) {
  const std::string value = node.get_string(attribute);
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  std::string list;
  for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
  fail(node_text(node), ": ", attribute, " '", value, "' cannot be executed; supported: ", list);
}

}  // namespace

StepFunction compile_resize(const ir::Node& node, const Wiring& w) {
  require_known(node, "mode", {"nearest", "linear", "cubic"});
  require_known(node, "coordinate_transformation_mode",
                {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"});
  require_known(node, "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  require(node.get_int("antialias") == 0, node_text(node), ": antialias cannot be executed");
  require(node.get_int("exclude_outside") == 0, node_text(node), ": exclude_outside cannot be executed");
  const std::string mode = node.get_string("mode"), transform = node.get_string("coordinate_transformation_mode");
  const std::string nearest_mode = node.get_string("nearest_mode"),
                    policy = node.get_string("keep_aspect_ratio_policy");
  const double cubic_a = node.get_float("cubic_coeff_a");
  const std::vector<float> scales = constant_floats(node, 2);
  const std::vector<int64_t> sizes = constant_ints(node, 3), given_axes = node.get_ints("axes");
  require(scales.empty() != sizes.empty(), node_text(node), ": needs scales or sizes, and not both");
  return [=, text = node_text(node)](Run& run) {
    at::Tensor x = mode == "nearest" ? run.plain(w.in[0]) : run.precise(w.in[0]);
    std::vector<int64_t> axes = given_axes;
    for (int64_t i = 0; given_axes.empty() && i < x.dim(); ++i) axes.push_back(i);
    require(axes.size() == std::max(scales.size(), sizes.size()), text, ": ", std::max(scales.size(), sizes.size()),
            " scales or sizes for ", axes.size(), " axes");
    std::vector<Axis> plan;
    double common = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i] = axes[i] < 0 ? axes[i] + x.dim() : axes[i];
      const int64_t in = x.size(axes[i]);
      require(in > 0, text, ": axis ", axes[i], " is empty");
      const double scale = sizes.empty() ? scales[i] : static_cast<double>(sizes[i]) / static_cast<double>(in);
      plan.push_back(
          {in, sizes.empty() ? static_cast<int64_t>(std::floor(static_cast<double>(in) * scale)) : sizes[i], scale});
      common = i == 0 ? scale : policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
    }
    if (policy != "stretch" && !sizes.empty())
      for (Axis& a : plan) {
        a.scale = common;
        a.out = static_cast<int64_t>(std::round(common * static_cast<double>(a.in)));
      }
    std::vector<size_t> changed;
    for (size_t i = 0; i < plan.size(); ++i)
      if (plan[i].in != plan[i].out || plan[i].scale != 1) changed.push_back(i);
    const bool spatial = x.dim() == 4 && !changed.empty() &&
                         std::all_of(changed.begin(), changed.end(), [&](size_t i) { return axes[i] >= 2; });
    if (spatial && mode == "linear" && changed.size() == 2 &&
        (transform == "half_pixel" || transform == "align_corners")) {
      std::optional<double> scale_h, scale_w;
      std::vector<int64_t> out = {x.size(2), x.size(3)};
      for (const size_t i : changed) {
        out[axes[i] - 2] = plan[i].out;
        (axes[i] == 2 ? scale_h : scale_w) = plan[i].scale;
      }
      x = at::upsample_bilinear2d(x, out, transform == "align_corners", scale_h, scale_w);
    } else {
      for (const size_t i : changed)
        x = resample(x, axes[i], make_taps(plan[i], mode, transform, nearest_mode, cubic_a));
    }
    run.set(w.out[0], run.flow(x));
  };
}

}  // namespace octet::train

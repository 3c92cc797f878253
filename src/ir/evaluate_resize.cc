// Evaluation of Resize: along each axis, an element is the weighted sum of a few others (one for nearest, two for
// linear, four for cubic), by the formulas of the ONNX specification.
#include <algorithm>
#include <cmath>
#include <map>

#include "ir/evaluate_parts.h"
#include "ir/evaluate_rules.h"

namespace octet::ir {
namespace {

struct Stretch {
  double in, out, scale;  // of an axis
};

double half_pixel(double i, const Stretch& s) {
  return (i + 0.5) / s.scale - 0.5;
}

// Where element i of the result lies among those it is made of.
using Place = double (*)(double i, const Stretch& s);
const std::map<std::string, Place> kPlaces = {
    {"half_pixel", half_pixel},
    {"asymmetric", [](double i, const Stretch& s) { return i / s.scale; }},
    {"align_corners", [](double i, const Stretch& s) { return s.out == 1 ? 0 : i * (s.in - 1) / (s.out - 1); }},
    {"pytorch_half_pixel", [](double i, const Stretch& s) { return s.out == 1 ? 0 : half_pixel(i, s); }},
    {"half_pixel_symmetric",
     [](double i, const Stretch& s) { return s.in / 2 * (1 - s.out / (s.scale * s.in)) + half_pixel(i, s); }}};

using Rounding = double (*)(double);
const std::map<std::string, Rounding> kRoundings = {
    {"floor", [](double x) { return std::floor(x); }},
    {"ceil", [](double x) { return std::ceil(x); }},
    {"round_prefer_floor", [](double x) { return std::ceil(x - 0.5); }},
    {"round_prefer_ceil", [](double x) { return std::floor(x + 0.5); }}};

double weight_of(int64_t taps, double distance, double a) {
  if (taps <= 2) return taps == 1 ? 1 : 1 - distance;
  return distance <= 1 ? ((a + 2) * distance - (a + 3)) * distance * distance + 1
                       : ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
}

}  // namespace

Tensors evaluate_resize(const Node& node, MemoryBudget& budget) {
  const std::map<std::string, int64_t> all_taps = {{"nearest", 1}, {"linear", 2}, {"cubic", 4}};
  const auto mode = all_taps.find(node.get_string("mode"));
  const auto place = kPlaces.find(node.get_string("coordinate_transformation_mode"));
  const auto rounding = kRoundings.find(node.get_string("nearest_mode"));
  Shape shape = tensor_of(node, 0).shape();
  const Shape& out = output_shape(node);
  if (mode == all_taps.end() || place == kPlaces.end() || rounding == kRoundings.end() || element_count(shape) == 0 ||
      node.get_int("antialias") != 0 || node.get_int("exclude_outside") != 0 ||
      node.get_string("keep_aspect_ratio_policy", "stretch") != "stretch" || !is_float(node.output()->type.data_type))
    return std::nullopt;
  std::vector<double> scales;
  for (size_t d = 0; d < shape.size(); ++d)
    scales.push_back(static_cast<double>(out[d]) / static_cast<double>(shape[d]));
  if (has_value(node, 2)) {
    const std::vector<int64_t> stated = node.get_ints("axes");
    const auto axes = normal_axes(node, stated.empty() ? all_axes(shape.size()) : stated, shape.size());
    for (size_t i = 0; i < axes.size(); ++i) scales[axes[i]] = doubles_of(node, 2)[i];
  }
  const int64_t taps = mode->second, first = taps == 4 ? -1 : 0;
  std::vector<double> x = doubles_of(node, 0);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const Stretch s{static_cast<double>(shape[axis]), static_cast<double>(out[axis]), scales[axis]};
    if (s.in == s.out && s.scale == 1) continue;
    const auto inner =
        static_cast<size_t>(element_count({shape.begin() + static_cast<int64_t>(axis) + 1, shape.end()}));
    const auto in = static_cast<size_t>(shape[axis]), size = static_cast<size_t>(out[axis]);
    shape[axis] = out[axis];
    budget.charge(8 * element_count(shape));
    std::vector<double> y(static_cast<size_t>(element_count(shape)), 0.0);
    for (size_t i = 0; i < size; ++i) {
      const double at = place->second(static_cast<double>(i), s);
      const double base = taps == 1 ? rounding->second(at) : std::floor(at);
      for (int64_t k = first; k < first + taps; ++k) {
        const double tap = base + static_cast<double>(k);
        const double weight = weight_of(taps, std::abs(at - tap), node.get_float("cubic_coeff_a"));
        const auto from = static_cast<size_t>(std::clamp(tap, 0.0, s.in - 1));
        for (size_t outer = 0; outer < x.size() / inner / in; ++outer)
          for (size_t j = 0; j < inner; ++j)
            y[(outer * size + i) * inner + j] += weight * x[(outer * in + from) * inner + j];
      }
    }
    x = std::move(y);
  }
  return only_output(node, x);
}

}  // namespace octet::ir

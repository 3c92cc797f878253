// Resize: along each axis, an element is the weighted sum of a few others (one for nearest, two for linear, four for
// cubic), by the formulas of the ONNX specification.
#include <algorithm>
#include <cmath>

#include "dense/operators.h"

namespace octet::dense {
namespace {

enum class Places { kHalfPixel, kPytorchHalfPixel, kHalfPixelSymmetric, kAlignCorners, kAsymmetric };
enum class Rounding { kFloor, kCeil, kPreferFloor, kPreferCeil };

template <typename Enum>
struct Named {
  const char* name;
  Enum value;
};
constexpr Named<int> kTaps[] = {{"nearest", 1}, {"linear", 2}, {"cubic", 4}};
constexpr Named<Places> kPlaces[] = {{"half_pixel", Places::kHalfPixel},
                                     {"pytorch_half_pixel", Places::kPytorchHalfPixel},
                                     {"half_pixel_symmetric", Places::kHalfPixelSymmetric},
                                     {"align_corners", Places::kAlignCorners},
                                     {"asymmetric", Places::kAsymmetric}};
constexpr Named<Rounding> kRoundings[] = {{"round_prefer_floor", Rounding::kPreferFloor},
                                          {"round_prefer_ceil", Rounding::kPreferCeil},
                                          {"floor", Rounding::kFloor},
                                          {"ceil", Rounding::kCeil}};

// The first name where the attribute is absent.
template <typename Enum, size_t N>
Enum choice_of(const AttributeReader& attributes, const char* key, const Named<Enum> (&names)[N]) {
  const std::string given = attributes.string_attribute(key, names[0].name);
  std::string all;
  for (const Named<Enum>& each : names) {
    if (given == each.name) return each.value;
    all += (all.empty() ? "" : ", ") + std::string(each.name);
  }
  fail("attribute '", key, "' is '", given, "', which is not supported here; supported are ", all);
}

struct ResizeSettings {
  int taps = 1;
  Places places = Places::kHalfPixel;
  Rounding rounding = Rounding::kPreferFloor;
  double cubic = -0.75;
};

ResizeSettings resize_settings_of(const AttributeReader& attributes) {
  for (const char* key : {"antialias", "exclude_outside"})
    require(attributes.int_attribute(key, 0) == 0, "attribute '", key, "' is not supported behind the plan");
  const std::string policy = attributes.string_attribute("keep_aspect_ratio_policy", "stretch");
  require(policy == "stretch", "keep_aspect_ratio_policy is '", policy, "', expected stretch");
  return {choice_of(attributes, "mode", kTaps), choice_of(attributes, "coordinate_transformation_mode", kPlaces),
          choice_of(attributes, "nearest_mode", kRoundings), attributes.float_attribute("cubic_coeff_a", -0.75f)};
}

struct ResizedAxis {
  int64_t in = 1, out = 1;
  double scale = 1;
};

double place_of(double i, const ResizedAxis& axis, Places places) {
  const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  const double half_pixel = (i + 0.5) / axis.scale - 0.5;
  switch (places) {
    case Places::kPytorchHalfPixel:
      return axis.out == 1 ? 0 : half_pixel;
    case Places::kHalfPixelSymmetric:
      return in / 2 * (1 - out / (axis.scale * in)) + half_pixel;
    case Places::kAlignCorners:
      return axis.out == 1 ? 0 : i * (in - 1) / (out - 1);
    case Places::kAsymmetric:
      return i / axis.scale;
    case Places::kHalfPixel:
      break;
  }
  return half_pixel;
}

double rounded_place(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kFloor:
      return std::floor(x);
    case Rounding::kCeil:
      return std::ceil(x);
    case Rounding::kPreferCeil:
      return std::floor(x + 0.5);
    case Rounding::kPreferFloor:
      break;
  }
  return std::ceil(x - 0.5);
}

double weight_of(int taps, double distance, double a) {
  if (taps <= 2) return taps == 1 ? 1 : 1 - distance;
  return distance <= 1 ? ((a + 2) * distance - (a + 3)) * distance * distance + 1
                       : ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
}

// The sizes of the result, and the scales that say where its elements lie.
std::vector<ResizedAxis> resized_axes_of(const Call& call, const Shape& shape) {
  std::vector<ResizedAxis> axes;
  for (const int64_t d : shape) axes.push_back({d, d, 1});
  std::vector<size_t> chosen;
  for (const int64_t axis : call.ints_attribute("axes").value_or(std::vector<int64_t>()))
    chosen.push_back(normal_axis(axis, shape.size()));
  if (chosen.empty())
    for (size_t d = 0; d < shape.size(); ++d) chosen.push_back(d);
  const Tensor *scales = call.optional(2), *sizes = call.optional(3);
  if (scales && scales->size() == 0) scales = nullptr;
  if (sizes && sizes->size() == 0) sizes = nullptr;
  require((scales != nullptr) != (sizes != nullptr), "should have scales or sizes, and not both");
  const int64_t count = scales ? scales->size() : sizes->size();
  require(count == static_cast<int64_t>(chosen.size()), "has ", count, " scales or sizes for ", chosen.size(), " axes");
  require(!scales || scales->type() == Type::kFloat, "its scales should be float32");
  const std::vector<int64_t> stated = sizes ? call.ints(3) : std::vector<int64_t>();
  for (size_t i = 0; i < chosen.size(); ++i) {
    ResizedAxis& axis = axes[chosen[i]];
    if (sizes) {
      require(stated[i] >= 0 && stated[i] <= int64_t{1} << 31, "a size is ", stated[i]);
      axis.out = stated[i];
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    } else {
      axis.scale = scales->values<float>()[i];
      require(axis.scale > 0 && axis.scale <= 1e9, "a scale is ", axis.scale);
      const double out = std::floor(static_cast<double>(axis.in) * axis.scale);
      require(out <= 2147483648.0, "a scale of ", axis.scale, " makes ", axis.in, " elements too many");
      axis.out = static_cast<int64_t>(out);
    }
  }
  return axes;
}

Tensors resize(const Call& call) {
  const ResizeSettings settings = resize_settings_of(call);
  Tensor x = call.input(0);
  require(x.type() == Type::kFloat, "is there for float32 only");
  const std::vector<ResizedAxis> axes = resized_axes_of(call, x.shape());
  for (size_t d = 0; d < axes.size(); ++d) {
    const ResizedAxis& axis = axes[d];
    if (axis.in == axis.out && axis.scale == 1) continue;
    Shape shape = x.shape();
    shape[d] = axis.out;
    Tensor y = call.memory().make<float>(shape);
    require(axis.in > 0 || y.size() == 0, "makes ", shape_text(shape), " of ", shape_text(x.shape()));
    if (y.size() == 0) {
      x = y;
      continue;
    }
    const int64_t inner = count_of(shape, d + 1, shape.size()), outer = count_of(shape, 0, d);
    const float* const from = x.values<float>().data();
    float* const to = y.mutable_values<float>().data();
    std::fill_n(to, y.size(), 0.0f);
    for (int64_t i = 0; i < axis.out; ++i) {
      const double at = place_of(static_cast<double>(i), axis, settings.places);
      const double base = settings.taps == 1 ? rounded_place(at, settings.rounding) : std::floor(at);
      const int first = settings.taps == 4 ? -1 : 0;
      for (int k = first; k < first + settings.taps; ++k) {
        const double tap = base + k;
        const auto weight = static_cast<float>(weight_of(settings.taps, std::abs(at - tap), settings.cubic));
        const auto read = static_cast<int64_t>(std::clamp(tap, 0.0, static_cast<double>(axis.in - 1)));
        for (int64_t o = 0; o < outer; ++o) {
          const float* const row = from + (o * axis.in + read) * inner;
          float* const sums = to + (o * axis.out + i) * inner;
          for (int64_t j = 0; j < inner; ++j) sums[j] += weight * row[j];
        }
      }
    }
    x = y;
  }
  return {x};
}

void check_resize(const AttributeReader& attributes) {
  resize_settings_of(attributes);
}

}  // namespace

std::vector<Operator> resize_operators() {
  return {{"Resize",
           resize,
           1,
           4,
           1,
           Typing::kFirst,
           {"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
            "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode"},
           check_resize}};
}

}  // namespace octet::dense

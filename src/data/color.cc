#include "data/color.h"

#include <cmath>
#include <cstddef>
#include <numbers>

#include "schema/schema.h"

namespace octet::data {
namespace {

using Rgb = std::array<double, 3>;

constexpr Rgb kGray = {0.299, 0.587, 0.114};  // ITU-R BT.601
// U = kU (B - Y) and V = kV (R - Y) of YUV: in these units a turn of the hue is a rotation.
constexpr double kU = 0.436 / (1 - kGray[2]), kV = 0.615 / (1 - kGray[0]);

Rgb saturated_and_turned(const Rgb& c, double saturation, double turns) {
  const double gray = kGray[0] * c[0] + kGray[1] * c[1] + kGray[2] * c[2];
  const double blue = c[2] - gray, red = c[0] - gray;
  const double along = saturation * std::cos(2 * std::numbers::pi * turns);
  const double across = saturation * std::sin(2 * std::numbers::pi * turns);
  const double new_red = along * red + across * (kU / kV) * blue;
  const double new_blue = along * blue - across * (kV / kU) * red;
  const double new_green = -(kGray[0] * new_red + kGray[2] * new_blue) / kGray[1];  // the gray stays
  return {gray + new_red, gray + new_green, gray + new_blue};
}

// Of deviation 1, drawn again beyond 2 (Box and Muller 1958).
double truncated_normal(CounterRng& random) {
  for (;;) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    const double value = radius * std::cos(2 * std::numbers::pi * random.uniform());
    if (std::abs(value) <= 2) return value;
  }
}

}  // namespace

void describe(schema::Section& s, ColorOptions& color) {
  s.field("brightness", color.brightness)
      .range(0, 1)
      .help("Values times 1 - brightness to 1 + brightness, as torchvision's ColorJitter.");
  s.field("contrast", color.contrast)
      .range(0, 1)
      .help(
          "Distance of the values from 0.5 times 1 - contrast to 1 + contrast (TAO's contrast_scale_max, whose default "
          "is 0.1; ColorJitter takes the distance from the mean of the image).");
  s.field("saturation", color.saturation)
      .range(0, 1)
      .help(
          "Distance of the values from the gray of their pixel times 1 - saturation to 1 + saturation, as ColorJitter; "
          "TAO's saturation_shift_max, default 0.2. Gray images have none.");
  s.field("hue", color.hue)
      .range(0, 0.5)
      .unit("turns")
      .help(
          "Colors turned by -hue to hue about the axis of the grays, which stay (ColorJitter turns them in HSV, nearly "
          "the same); TAO's hue_rotation_max / 360, default 0.07. Gray images have none.");
}

void describe(schema::Section& s, ColorAugmentation& color) {
  s.field("color_shift_stddev", color.color_shift_stddev)
      .range(0, 1)
      .unit("of values in [0, 1]")
      .help("Deviation of what is added to red, green and blue each; at most twice of it.");
  s.field("hue_rotation_max", color.hue_rotation_max)
      .range(0, 360)
      .unit("degrees")
      .help("Greatest turn of the colors about the axis of the grays, either way; half of it is the deviation.");
  s.field("saturation_shift_max", color.saturation_shift_max)
      .range(0, 1)
      .help("Distance of the values from the gray of their pixel times 1 - this to 1 + this.");
  s.field("contrast_scale_max", color.contrast_scale_max)
      .range(0, 1)
      .help("Distance of the values from contrast_center times 1 - this to 1 + this; half of it is the deviation.");
  s.field("contrast_center", color.contrast_center)
      .range(0, 1)
      .unit("of values in [0, 1]")
      .help("The value that contrast leaves as it is.");
}

Color Color::of(const ColorChange& change) {
  const double scale = change.brightness * change.contrast;
  const double added = change.brightness * ((1 - change.contrast) * change.contrast_center);
  const bool in_color = change.saturation != 1 || change.hue != 0;
  Color color;
  for (size_t from = 0; from < 3; ++from) {
    Rgb column{};
    column[from] = 1;
    // Not where nothing changes: rounding would make the channels depend on one another.
    if (in_color) column = saturated_and_turned(column, change.saturation, change.hue);
    for (size_t to = 0; to < 3; ++to) color.rows[to][from] = scale * column[to];
  }
  for (size_t to = 0; to < 3; ++to) color.rows[to][3] = added + change.shift[to];
  return color;
}

bool Color::mixes() const {
  for (size_t to = 0; to < 3; ++to)
    for (size_t from = 0; from < 3; ++from)
      if (to != from && rows[to][from] != 0) return true;
  return false;
}

ColorChange choose_color(const ColorOptions& options, CounterRng& random) {
  const auto about = [&random](double middle, double reach) { return random.uniform(middle - reach, middle + reach); };
  // In this order; the braces of an initializer are evaluated from left to right.
  return {.brightness = about(1, options.brightness),
          .contrast = about(1, options.contrast),
          .saturation = about(1, options.saturation),
          .hue = about(0, options.hue)};
}

ColorChange choose_color(const ColorAugmentation& options, CounterRng& random) {
  ColorChange change;
  change.hue = options.hue_rotation_max / 360 * truncated_normal(random) / 2;
  change.saturation = random.uniform(1 - options.saturation_shift_max, 1 + options.saturation_shift_max);
  change.contrast = 1 + options.contrast_scale_max * truncated_normal(random) / 2;
  change.contrast_center = options.contrast_center;
  for (double& shift : change.shift) shift = options.color_shift_stddev * truncated_normal(random);
  return change;
}

}  // namespace octet::data

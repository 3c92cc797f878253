// How the colors of an image change in training. Like the place of its pixels (Geometry) it is chosen first and then
// painted: brightness, contrast, saturation and hue are one affine function of red, green and blue, as in NVIDIA TAO.
#pragma once
#include <array>

#include "data/counter_rng.h"
#include "schema/enum_names.h"

namespace octet::data {

// How far each image may go, either way; what it gets is drawn uniformly. 0 everywhere: not at all.
struct ColorOptions {
  double brightness = 0;  // 0 .. 1: values times 1 - brightness to 1 + brightness
  double contrast = 0;    // 0 .. 1: their distance from 0.5, the middle gray, likewise
  double saturation = 0;  // 0 .. 1: their distance from the gray of the pixel, likewise
  double hue = 0;         // 0 .. 0.5: share of a full turn
};
void describe(schema::Section& s, ColorOptions& color);

// The same in the terms and with the distributions of NVIDIA TAO (color_augmentation). Those that are called normal
// have twice their deviation as limit, and are drawn again beyond it. 0 everywhere: not at all.
struct ColorAugmentation {
  double color_shift_stddev = 0;    // added to each channel, normal
  double hue_rotation_max = 0;      // degrees, normal
  double saturation_shift_max = 0;  // uniform
  double contrast_scale_max = 0;    // normal
  double contrast_center = 0.5;     // the value that contrast leaves as it is
};
void describe(schema::Section& s, ColorAugmentation& color);

// What one image gets.
struct ColorChange {
  double brightness = 1, contrast = 1, saturation = 1;  // factors
  double hue = 0;                                       // turns, positive from red through yellow to green
  double contrast_center = 0.5;
  std::array<double, 3> shift = {};  // of red, green and blue
};

// Of red, green and blue from 0 to 1; results beyond are cut to that.
struct Color {
  // A row for red, green and blue each: the shares of the three old values, and what is added.
  std::array<std::array<double, 4>, 3> rows = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};

  // Saturation and hue first, then contrast, then brightness, then what is added. The gray of a pixel is 0.299 R +
  // 0.587 G + 0.114 B; hue turns the color differences of YUV (those of YIQ, too) and keeps that gray, which comes near
  // to a turn in HSV and is linear.
  static Color of(const ColorChange& change);

  bool is_identity() const { return *this == Color(); }
  bool mixes() const;  // the new value of a channel depends on others
  bool operator==(const Color&) const = default;
};

// Takes four numbers of `random` whatever the options, so that one option does not change what another draws.
ColorChange choose_color(const ColorOptions& options, CounterRng& random);
ColorChange choose_color(const ColorAugmentation& options, CounterRng& random);  // likewise

}  // namespace octet::data

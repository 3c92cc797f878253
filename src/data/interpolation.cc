#include "data/interpolation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"

namespace octet::data {

OCTET_ENUM_NAMES(Interpolation, {Interpolation::kAntialias, "antialias"}, {Interpolation::kBilinear, "bilinear"},
                 {Interpolation::kTensorflow1, "tensorflow1"})

namespace {

// Two positions of an axis, and the share of the upper one.
struct Tap {
  int lower = 0, upper = 0;
  float share = 0;
};

// For the output positions [begin, begin + count) of an axis that goes from `in` to `out` pixels.
std::vector<Tap> make_taps(int in, int out, int begin, int count, bool half_centers) {
  std::vector<Tap> taps;
  const double scale = static_cast<double>(in) / out;
  for (int i = begin; i < begin + count; ++i) {
    const double at = half_centers ? std::max(0.0, (i + 0.5) * scale - 0.5) : i * scale;
    const int lower = std::min(static_cast<int>(at), in - 1);
    taps.push_back({lower, std::min(lower + 1, in - 1), static_cast<float>(at - lower)});
  }
  return taps;
}

Image sampled(const Image& image, const Region& region, int height, int width, const Region& part, bool half_centers) {
  const std::vector<Tap> rows = make_taps(region.height, height, part.top, part.height, half_centers);
  const std::vector<Tap> columns = make_taps(region.width, width, part.left, part.width, half_centers);
  const int channels = image.channels;
  Image out{part.height, part.width, channels, {}};
  out.pixels.resize(out.size());
  for (int y = 0; y < part.height; ++y) {
    const Tap& row = rows[static_cast<size_t>(y)];
    const uint8_t* upper = image.row(region.top + row.lower) + static_cast<ptrdiff_t>(region.left) * channels;
    const uint8_t* lower = image.row(region.top + row.upper) + static_cast<ptrdiff_t>(region.left) * channels;
    uint8_t* to = out.row(y);
    for (const Tap& column : columns)
      for (int c = 0; c < channels; ++c) {
        const int left = column.lower * channels + c, right = column.upper * channels + c;
        const auto mixed = [&column, left, right](const uint8_t* in) {
          const auto a = static_cast<float>(in[left]), b = static_cast<float>(in[right]);
          return a + (b - a) * column.share;
        };
        const float top = mixed(upper), bottom = mixed(lower);
        *to++ = static_cast<uint8_t>(top + (bottom - top) * row.share + 0.5f);
      }
  }
  return out;
}

}  // namespace

Image resized_part(const Image& image, const Region& region, int height, int width, const Region& part,
                   Interpolation interpolation) {
  OCTET_CHECK(region.top >= 0 && region.left >= 0 && region.height > 0 && region.width > 0 &&
              region.top + region.height <= image.height && region.left + region.width <= image.width);
  OCTET_CHECK(part.top >= 0 && part.left >= 0 && part.top + part.height <= height && part.left + part.width <= width);
  if (interpolation != Interpolation::kAntialias)
    return sampled(image, region, height, width, part, interpolation == Interpolation::kBilinear);
  if (part.height == height && part.width == width) return resize_bilinear(image, region, height, width);
  OCTET_CHECK(region.height == image.height && region.width == image.width, "a cut of a cut");
  return resize_bilinear_part(image, height, width, part);
}

}  // namespace octet::data

#include "data/resize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octet::data {
namespace {

// Fixed point as in Pillow: 8 bits of value, 2 bits of headroom for the sum, the rest for the weight.
constexpr int kWeightBits = 32 - 8 - 2;

// For each output position the source positions that count and their weights.
struct Taps {
  struct Range {
    int first, count;
  };
  std::vector<Range> ranges;
  std::vector<int32_t> weights;  // `stride` per output position
  int stride = 0;
};

Taps make_taps(int in, int out) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0), support = filter_scale;
  Taps taps;
  taps.stride = static_cast<int>(std::ceil(support)) * 2 + 1;
  taps.ranges.resize(out);
  taps.weights.assign(static_cast<size_t>(out) * taps.stride, 0);
  std::vector<double> exact(taps.stride);
  for (int i = 0; i < out; i++) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int count = std::min(in, static_cast<int>(centre + support + 0.5)) - first;
    double sum = 0;
    for (int k = 0; k < count; k++) {
      exact[k] = std::max(0.0, 1.0 - std::abs((k + first - centre + 0.5) * (1.0 / filter_scale)));
      sum += exact[k];
    }
    for (int k = 0; k < count; k++)
      taps.weights[static_cast<size_t>(i) * taps.stride + k] =
          static_cast<int32_t>(0.5 + exact[k] / sum * (1 << kWeightBits));
    taps.ranges[i] = {first, count};
  }
  return taps;
}

uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

template <int kChannels>
void resize_row(const uint8_t* in, const Taps& taps, uint8_t* out) {
  for (size_t x = 0; x < taps.ranges.size(); x++) {
    const auto [first, count] = taps.ranges[x];
    const int32_t* weights = &taps.weights[x * taps.stride];
    int32_t sums[kChannels];
    std::fill_n(sums, kChannels, 1 << (kWeightBits - 1));
    for (int k = 0; k < count; k++)
      for (int c = 0; c < kChannels; c++) sums[c] += in[(first + k) * kChannels + c] * weights[k];
    for (int c = 0; c < kChannels; c++) out[x * kChannels + c] = to_byte(sums[c]);
  }
}

Image crop(const Image& image, const Region& region) {
  Image out{region.height, region.width, image.channels, {}};
  out.pixels.resize(out.size());
  const size_t row_bytes = static_cast<size_t>(region.width) * image.channels;
  for (int y = 0; y < region.height; y++)
    std::copy_n(image.row(region.top + y) + static_cast<size_t>(region.left) * image.channels, row_bytes, out.row(y));
  return out;
}

}  // namespace

Image resize_bilinear(const Image& image, const Region& region, int height, int width) {
  OCTET_CHECK(region.top >= 0 && region.left >= 0 && region.height > 0 && region.width > 0 &&
              region.top + region.height <= image.height && region.left + region.width <= image.width);
  OCTET_CHECK(height > 0 && width > 0 && (image.channels == 1 || image.channels == 3));
  if (region.height == height && region.width == width) return crop(image, region);

  // Columns first, rounded to bytes, then rows: the order is part of the result.
  Image wide{region.height, width, image.channels, {}};
  if (region.width == width) {
    wide = crop(image, region);
  } else {
    wide.pixels.resize(wide.size());
    const Taps columns = make_taps(region.width, width);
    for (int y = 0; y < region.height; y++) {
      const uint8_t* in = image.row(region.top + y) + static_cast<size_t>(region.left) * image.channels;
      image.channels == 1 ? resize_row<1>(in, columns, wide.row(y)) : resize_row<3>(in, columns, wide.row(y));
    }
  }
  if (region.height == height) return wide;
  Image out{height, width, image.channels, {}};
  out.pixels.resize(out.size());
  const Taps rows = make_taps(region.height, height);
  const size_t row_bytes = static_cast<size_t>(width) * image.channels;
  std::vector<int32_t> sums(row_bytes);
  for (int y = 0; y < height; y++) {
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    for (int k = 0; k < rows.ranges[y].count; k++) {
      const uint8_t* in = wide.row(rows.ranges[y].first + k);
      const int32_t weight = rows.weights[static_cast<size_t>(y) * rows.stride + k];
      for (size_t x = 0; x < row_bytes; x++) sums[x] += in[x] * weight;
    }
    std::transform(sums.begin(), sums.end(), out.row(y), to_byte);
  }
  return out;
}

Image resize_bilinear(const Image& image, int height, int width) {
  return resize_bilinear(image, {0, 0, image.height, image.width}, height, width);
}

}  // namespace octet::data

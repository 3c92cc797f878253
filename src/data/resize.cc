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

// For the output positions [begin, begin + count) of an axis that goes from `in` to `out` pixels.
Taps make_taps(int in, int out, int begin, int count) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0), support = filter_scale;
  Taps taps;
  taps.stride = static_cast<int>(std::ceil(support)) * 2 + 1;
  taps.ranges.resize(count);
  taps.weights.assign(static_cast<size_t>(count) * taps.stride, 0);
  std::vector<double> exact(taps.stride);
  for (int i = 0; i < count; ++i) {
    const double center = (begin + i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int length = std::min(in, static_cast<int>(center + support + 0.5)) - first;
    double sum = 0;
    for (int k = 0; k < length; ++k) {
      exact[k] = std::max(0.0, 1.0 - std::abs((k + first - center + 0.5) * (1.0 / filter_scale)));
      sum += exact[k];
    }
    for (int k = 0; k < length; ++k)
      taps.weights[static_cast<size_t>(i) * taps.stride + k] =
          static_cast<int32_t>(0.5 + exact[k] / sum * (1 << kWeightBits));
    taps.ranges[i] = {first, length};
  }
  return taps;
}

uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

template <int kChannels>
void resize_row(const uint8_t* in, const Taps& taps, uint8_t* out) {
  for (size_t x = 0; x < taps.ranges.size(); ++x) {
    const auto [first, count] = taps.ranges[x];
    const int32_t* weights = &taps.weights[x * taps.stride];
    int32_t sums[kChannels];
    std::fill_n(sums, kChannels, 1 << (kWeightBits - 1));
    for (int k = 0; k < count; ++k)
      for (int c = 0; c < kChannels; ++c) sums[c] += in[(first + k) * kChannels + c] * weights[k];
    for (int c = 0; c < kChannels; ++c) out[x * kChannels + c] = to_byte(sums[c]);
  }
}

// The pixels `part` of `region` resized to height x width.
Image resize(const Image& image, const Region& region, int height, int width, const Region& part) {
  OCTET_CHECK(region.top >= 0 && region.left >= 0 && region.height > 0 && region.width > 0 &&
              region.top + region.height <= image.height && region.left + region.width <= image.width);
  OCTET_CHECK(part.top >= 0 && part.left >= 0 && part.height > 0 && part.width > 0 &&
              part.top + part.height <= height && part.left + part.width <= width);
  OCTET_CHECK(image.channels == 1 || image.channels == 3, image.channels);
  const bool same_width = region.width == width, same_height = region.height == height;
  const Taps rows = same_height ? Taps{} : make_taps(region.height, height, part.top, part.height);
  // The source rows that the result depends on.
  const int first_row = same_height ? part.top : rows.ranges.front().first;
  const int end_row = same_height ? part.top + part.height : rows.ranges.back().first + rows.ranges.back().count;

  // Columns first, rounded to bytes, then rows: the order is part of the result.
  const size_t row_bytes = static_cast<size_t>(part.width) * image.channels;
  Image wide{end_row - first_row, part.width, image.channels, {}};
  wide.pixels.resize(wide.size());
  const Taps columns = same_width ? Taps{} : make_taps(region.width, width, part.left, part.width);
  for (int y = 0; y < wide.height; ++y) {
    const uint8_t* in = image.row(region.top + first_row + y) + static_cast<size_t>(region.left) * image.channels;
    if (same_width)
      std::copy_n(in + static_cast<size_t>(part.left) * image.channels, row_bytes, wide.row(y));
    else
      image.channels == 1 ? resize_row<1>(in, columns, wide.row(y)) : resize_row<3>(in, columns, wide.row(y));
  }
  if (same_height) return wide;
  Image out{part.height, part.width, image.channels, {}};
  out.pixels.resize(out.size());
  std::vector<int32_t> sums(row_bytes);
  for (int y = 0; y < out.height; ++y) {
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    for (int k = 0; k < rows.ranges[y].count; ++k) {
      const uint8_t* in = wide.row(rows.ranges[y].first - first_row + k);
      const int32_t weight = rows.weights[static_cast<size_t>(y) * rows.stride + k];
      for (size_t x = 0; x < row_bytes; ++x) sums[x] += in[x] * weight;
    }
    std::transform(sums.begin(), sums.end(), out.row(y), to_byte);
  }
  return out;
}

}  // namespace

Image resize_bilinear(const Image& image, const Region& region, int height, int width) {
  return resize(image, region, height, width, {0, 0, height, width});
}

Image resize_bilinear(const Image& image, int height, int width) {
  return resize_bilinear(image, {0, 0, image.height, image.width}, height, width);
}

Image resize_bilinear_part(const Image& image, int height, int width, const Region& part) {
  return resize(image, {0, 0, image.height, image.width}, height, width, part);
}

}  // namespace octet::data

#include "data/warp.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "data/resize.h"

namespace octet::data {
namespace {

struct Interval {
  double low = 0, high = 0;

  // The part of it where 0 <= slope * t + start < length.
  void cut(double slope, double start, double length) {
    if (slope == 0) {
      if (!(start >= 0 && start < length)) high = low;
      return;
    }
    const double a = -start / slope, b = (length - start) / slope;
    low = std::max(low, std::min(a, b));
    high = std::min(high, std::max(a, b));
  }
};

// Sides that keep all that can be seen of an image whose axes are scaled by these factors.
int shrunk_side(int side, double factor) {
  return std::max(1, static_cast<int>(std::lround(side * std::min(factor, 1.0))));
}

}  // namespace

Span seen_in_row(const Affine& back, int y, int out_width, int height, int width) {
  Interval middles{0, static_cast<double>(out_width)};
  const Point start = back(0, y + 0.5);
  middles.cut(back.xx, start.x, width);
  middles.cut(back.yx, start.y, height);
  if (!(middles.low < middles.high)) return {};
  const auto seen = [&](int x) {
    const Point p = back(x + 0.5, y + 0.5);
    return p.x >= 0 && p.x < width && p.y >= 0 && p.y < height;
  };
  // Rounding may have moved the ends by one.
  Span span{std::max(0, static_cast<int>(std::floor(middles.low - 0.5)) - 1),
            std::min(out_width, static_cast<int>(std::ceil(middles.high + 0.5)) + 1)};
  while (span.begin < span.end && !seen(span.begin)) ++span.begin;
  while (span.end > span.begin && !seen(span.end - 1)) --span.end;
  return span;
}

WarpedImage::WarpedImage(const Image& image, const Affine& to_output, int out_width)
    : image_(image), source_(&image), back_(to_output.inverse()), out_width_(out_width) {
  OCTET_CHECK(to_output.determinant() != 0);
  const int width = shrunk_side(image.width, std::hypot(to_output.xx, to_output.yx));
  const int height = shrunk_side(image.height, std::hypot(to_output.xy, to_output.yy));
  if (width < image.width || height < image.height) {
    shrunk_ = resize_bilinear(image, height, width);
    source_ = &shrunk_;
  }
  to_source_ = Affine::translation(-0.5, -0.5) *
               Affine::scaling(static_cast<double>(width) / image.width, static_cast<double>(height) / image.height) *
               back_;
}

Span WarpedImage::row(int y, uint8_t* out) const {
  const Span span = seen_in_row(back_, y, out_width_, image_.height, image_.width);
  const int channels = source_->channels;
  const double last_x = source_->width - 1, last_y = source_->height - 1;
  out += static_cast<ptrdiff_t>(span.begin) * channels;
  for (int x = span.begin; x < span.end; ++x, out += channels) {
    const Point p = to_source_(x + 0.5, y + 0.5);
    const double u = std::clamp(p.x, 0.0, last_x), v = std::clamp(p.y, 0.0, last_y);
    const int left = static_cast<int>(u), top = static_cast<int>(v);
    const auto right_share = static_cast<float>(u - left), lower_share = static_cast<float>(v - top);
    const ptrdiff_t next = left < source_->width - 1 ? channels : 0;
    const uint8_t* upper = source_->row(top) + static_cast<ptrdiff_t>(left) * channels;
    const uint8_t* lower =
        top < source_->height - 1 ? upper + static_cast<ptrdiff_t>(source_->width) * channels : upper;
    for (int c = 0; c < channels; ++c) {
      const float a = static_cast<float>(upper[c]) + right_share * static_cast<float>(upper[c + next] - upper[c]);
      const float b = static_cast<float>(lower[c]) + right_share * static_cast<float>(lower[c + next] - lower[c]);
      out[c] = static_cast<uint8_t>(a + lower_share * (b - a) + 0.5f);
    }
  }
  return span;
}

vision::Mask warped(const vision::Mask& mask, const Affine& to_output, int out_height, int out_width) {
  const Affine back = to_output.inverse();
  const std::vector<uint8_t> in = vision::pixels(mask);
  std::vector<uint8_t> out(static_cast<size_t>(out_height) * static_cast<size_t>(out_width), 0);
  for (int y = 0; y < out_height; ++y) {
    uint8_t* row = out.data() + static_cast<size_t>(y) * static_cast<size_t>(out_width);
    const Span span = seen_in_row(back, y, out_width, mask.height(), mask.width());
    for (int x = span.begin; x < span.end; ++x) {
      const Point p = back(x + 0.5, y + 0.5);
      row[x] = in[static_cast<size_t>(p.y) * static_cast<size_t>(mask.width()) + static_cast<size_t>(p.x)];
    }
  }
  return vision::mask_of_pixels(out, out_height, out_width);
}

}  // namespace octet::data

#include "data/augment.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "data/counter_rng.h"
#include "data/resize.h"
#include "data/warp.h"

namespace octet::data {

OCTET_ENUM_NAMES(ChannelOrder, {ChannelOrder::kRgb, "rgb"}, {ChannelOrder::kBgr, "bgr"})

int shorter_side(const TransformOptions& options) {
  if (options.resize > 0) return static_cast<int>(options.resize);
  return static_cast<int>(std::lround(std::max(options.height, options.width) / 0.875));
}

namespace {

// Keep random numbers of colors and of the matrix apart from those of the rest of the geometry.
constexpr uint64_t kColorStream = 0x636f6c6f72, kSpatialStream = 0x7370617469616c;

void check_statistics(const char* name, const std::vector<double>& values, int channels, bool positive) {
  if (!values.empty() && values.size() != 1 && std::cmp_not_equal(values.size(), channels))
    fail_usage("transform: ", values.size(), " values of ", name, " for images of ", channels, " channels");
  for (const float value : std::vector<float>(values.begin(), values.end()))
    if (!std::isfinite(value) || (positive && value <= 0))
      fail_usage("transform: ", name, " ", value, " is out of range");
}

void check_options(const TransformOptions& o) {
  if (o.height < 0 || o.width < 0) fail_usage("transform: output size ", o.height, " x ", o.width, " is negative");
  if (o.mode != ResizeMode::kNone && (o.height == 0 || o.width == 0))
    fail_usage("transform: resizing needs the output height and width");
  if (o.mode == ResizeMode::kCenterCrop && shorter_side(o) < std::max(o.height, o.width))
    fail_usage("transform: the shorter side (", shorter_side(o), ") must be at least the crop (", o.height, " x ",
               o.width, ")");
  if (o.preprocessing && o.preprocessing->moves_pixels() && o.mode != ResizeMode::kStretch)
    fail_usage("transform: preprocessing cuts and scales only what is resized straight to the input");
  if (!(o.central_fraction > 0 && o.central_fraction <= 1))
    fail_usage("transform: the central fraction ", o.central_fraction, " must lie in (0, 1]");
  if (o.central_fraction < 1 && ((o.preprocessing && o.preprocessing->moves_pixels()) || o.resize > 0))
    fail_usage("transform: a central fraction is resized straight to the input, without another crop");
  if (o.crop_padding < 0) fail_usage("transform: crop_padding ", o.crop_padding, " is negative");
  const double min_area = o.scale.at(0), max_area = o.scale.at(1), narrowest = o.ratio.at(0), widest = o.ratio.at(1);
  if (!(min_area > 0 && min_area <= max_area && max_area <= 1))
    fail_usage("transform: random crop areas ", min_area, " to ", max_area, " must lie in (0, 1]");
  if (!(narrowest > 0 && narrowest <= widest))
    fail_usage("transform: aspect ratios ", narrowest, " to ", widest, " must be positive and ordered");
}

// As torchvision: ten tries, then the largest centered rectangle within the limits of the aspect ratio.
Region random_region(int height, int width, const TransformOptions& o, CounterRng& random) {
  const double area = static_cast<double>(height) * width;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(o.scale[0], o.scale[1]);
    const double aspect = std::exp(random.uniform(std::log(o.ratio[0]), std::log(o.ratio[1])));
    const int w = static_cast<int>(std::lround(std::sqrt(target * aspect)));
    const int h = static_cast<int>(std::lround(std::sqrt(target / aspect)));
    const int64_t tops = height - h + 1, lefts = width - w + 1;
    if (w > 0 && h > 0 && tops > 0 && lefts > 0)
      return {static_cast<int>(random.below(tops)), static_cast<int>(random.below(lefts)), h, w};
  }
  const double aspect = std::clamp(static_cast<double>(width) / height, o.ratio[0], o.ratio[1]);
  const int w = std::clamp(static_cast<int>(std::lround(height * aspect)), 1, width);
  const int h = std::clamp(static_cast<int>(std::lround(width / aspect)), 1, height);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

// The middle of the image, as tf.image.central_crop takes it.
Region central_region(int height, int width, double fraction) {
  const int top = static_cast<int>((height - height * fraction) / 2);
  const int left = static_cast<int>((width - width * fraction) / 2);
  return {top, left, height - 2 * top, width - 2 * left};
}

// Resizes the shorter side and takes the middle.
void center_crop(Geometry& g, int shorter, Interpolation interpolation) {
  const bool tall = g.source.height > g.source.width, slim = interpolation == Interpolation::kTensorflow1;
  const auto longer = [&](int64_t other, int64_t side) {
    const int64_t length =
        slim ? std::llrint(shorter * (static_cast<double>(other) / static_cast<double>(side))) : shorter * other / side;
    require(length <= INT32_MAX, "is ", g.source.height, " x ", g.source.width, " pixels, too long to be resized");
    return static_cast<int>(length);
  };
  g.resized_height = tall ? longer(g.source.height, g.source.width) : shorter;
  g.resized_width = tall ? shorter : longer(g.source.width, g.source.height);
  // Half to even, as torchvision rounds.
  const auto half = [slim](int beyond) { return slim ? beyond / 2 : static_cast<int>(std::nearbyint(beyond / 2.0)); };
  g.top = half(g.resized_height - g.height);
  g.left = half(g.resized_width - g.width);
}

// Stretches what preprocessing cuts out, where that lies in the image, else leads through a matrix.
void preprocess(Geometry& g, const PreprocessingOptions& p, bool scale_first) {
  if (!p.moves_pixels()) return;
  if (!p.scales() && p.enable_auto_resize && p.crop_right <= g.source.width && p.crop_bottom <= g.source.height)
    g.source = {static_cast<int>(p.crop_top), static_cast<int>(p.crop_left),
                static_cast<int>(p.crop_bottom - p.crop_top), static_cast<int>(p.crop_right - p.crop_left)};
  else
    g.warp = preprocessing_matrix(p, g.source.height, g.source.width, g.height, g.width, scale_first);
}

bool is_whole(const Region& region, int height, int width) {
  return region.top == 0 && region.left == 0 && region.height == height && region.width == width;
}

Normalization normalization(const TransformOptions& o, int channels) {
  check_statistics("mean", o.mean, channels, false);
  check_statistics("stddev", o.std, channels, true);
  if (o.order == ChannelOrder::kBgr && channels != 3)
    fail_usage("transform: the order bgr is of 3 channels, images have ", channels);
  // In the order of images.
  const auto for_each = [channels, &o](const std::vector<double>& values, float otherwise) {
    const auto count = static_cast<size_t>(channels);
    std::vector<float> out(count, values.empty() ? otherwise : static_cast<float>(values[0]));
    if (values.size() == count) out.assign(values.begin(), values.end());
    if (o.order == ChannelOrder::kBgr) std::reverse(out.begin(), out.end());
    return out;
  };
  return {for_each(o.mean, 0), for_each(o.std, 1)};
}

}  // namespace

Transform::Transform(const TransformOptions& options, const Image& first)
    : options_((check_options(options), options)),
      shape_{first.channels, options.height > 0 ? options.height : first.height,
             options.width > 0 ? options.width : first.width},
      normalization_(normalization(options, first.channels)) {}

Geometry Transform::choose(int height, int width, const AugmentKey& key) const {
  CounterRng random = key.random();
  Geometry g{.height = shape_.height,
             .width = shape_.width,
             .source = {0, 0, height, width},
             .resized_height = shape_.height,
             .resized_width = shape_.width};
  switch (options_.mode) {
    case ResizeMode::kNone:
      require(height == shape_.height && width == shape_.width, "is ", height, " x ", width,
              " pixels (height x width), expected ", shape_.height, " x ", shape_.width, "; choose a way of resizing");
      break;
    case ResizeMode::kStretch:
      if (options_.central_fraction < 1) g.source = central_region(height, width, options_.central_fraction);
      if (options_.preprocessing) preprocess(g, *options_.preprocessing, options_.tao_compatible);
      break;
    case ResizeMode::kCenterCrop:
      center_crop(g, shorter_side(options_), options_.interpolation);
      break;
    case ResizeMode::kRandomResizedCrop:
      g.source = random_region(height, width, options_, random);
      break;
  }
  if (const int padding = options_.crop_padding; padding > 0) {
    g.shift_y = static_cast<int>(random.below(2 * padding + 1)) - padding;
    g.shift_x = static_cast<int>(random.below(2 * padding + 1)) - padding;
  }
  g.mirrored = options_.flip && (random.next() & 1);
  g.two_corners = options_.tao_compatible;
  if (g.warp) {
    const Affine shifted = Affine::translation(-g.shift_x, -g.shift_y) * *g.warp;
    g.warp = g.mirrored ? Affine{.xx = -1, .x0 = static_cast<double>(g.width)} * shifted : shifted;
  }
  if (options_.spatial) {
    CounterRng own = key.random(kSpatialStream);
    const Affine change =
        choose_spatial(*options_.spatial, g.height, g.width, options_.tao_compatible, own).matrix(g.height, g.width);
    if (change != Affine()) g.warp = change * g.matrix();
  }
  if (g.warp) g.source = {0, 0, height, width};
  return g;
}

Color Transform::choose_color(const AugmentKey& key) const {
  if (!options_.color && !options_.color_augmentation) return {};
  CounterRng random = key.random(kColorStream);
  ColorChange change = options_.color ? data::choose_color(*options_.color, random)
                                      : data::choose_color(*options_.color_augmentation, random);
  if (shape_.channels == 1) change.saturation = 1, change.hue = 0;
  return Color::of(change);
}

void Transform::paint(const Image& image, const Geometry& g, float* out, const Color& color) const {
  require(image.channels == shape_.channels, "has ", image.channels, " channels, expected ", shape_.channels);
  OCTET_CHECK(g.height == shape_.height && g.width == shape_.width);
  const PixelPainter painter(normalization_, color);
  // Channel c of the image goes to `out` + c * `plane`.
  ptrdiff_t plane = static_cast<ptrdiff_t>(shape_.height) * shape_.width;
  if (options_.order == ChannelOrder::kBgr) {
    out += 2 * plane;
    plane = -plane;
  }
  if (g.warp) return paint_warped(image, g, out, plane, painter);
  Image changed;
  const Image* source = &image;
  const bool as_it_is = is_whole(g.source, g.height, g.width) && image.height == g.height && image.width == g.width &&
                        g.resized_height == g.height && g.resized_width == g.width;
  if (!as_it_is) {
    changed = resized_part(image, g.source, g.resized_height, g.resized_width, {g.top, g.left, g.height, g.width},
                           options_.interpolation);
    source = &changed;
  }
  const int dy = g.shift_y, dx = g.shift_x;
  const int channels = shape_.channels, height = shape_.height, width = shape_.width;
  // Output columns [begin, end) read source column x + dx before the flip; the others are border.
  const int begin = std::clamp(-dx, 0, width), end = std::clamp(width - dx, begin, width);
  for (int y = 0; y < height; ++y, out += width) {
    const int source_y = y + dy;
    const bool inside = source_y >= 0 && source_y < height;
    for (int c = 0; c < channels; ++c) {
      float* row = out + c * plane;
      std::fill(row, row + (inside ? begin : width), normalization_.table(c)[0]);
      std::fill(row + end, row + width, normalization_.table(c)[0]);
    }
    if (!inside) continue;
    painter.row(source->row(source_y) + static_cast<ptrdiff_t>(begin + dx) * channels, end - begin, out + begin, plane);
    if (g.mirrored)
      for (int c = 0; c < channels; ++c) std::reverse(out + c * plane, out + c * plane + width);
  }
}

void Transform::paint_warped(const Image& image, const Geometry& g, float* out, ptrdiff_t plane,
                             const PixelPainter& painter) const {
  const WarpedImage warp(image, *g.warp, g.width);
  std::vector<uint8_t> pixels(static_cast<size_t>(g.width) * static_cast<size_t>(image.channels));
  for (int y = 0; y < g.height; ++y, out += g.width) {
    const Span seen = warp.row(y, pixels.data());
    for (int c = 0; c < image.channels; ++c) {
      float* row = out + c * plane;
      std::fill(row, row + seen.begin, normalization_.table(c)[0]);
      std::fill(row + seen.end, row + g.width, normalization_.table(c)[0]);
    }
    painter.row(pixels.data() + static_cast<ptrdiff_t>(seen.begin) * image.channels, seen.end - seen.begin,
                out + seen.begin, plane);
  }
}

int decode_hint(const TransformOptions& options) {
  const bool enlarges = options.spatial && options.spatial->zoom_max > 1;
  if (enlarges || (options.preprocessing && options.preprocessing->moves_pixels())) return 0;  // in pixels of the file
  // These look at single pixels, of which a decoder that shrinks has other ones; a fraction is in pixels of the file.
  if (options.interpolation != Interpolation::kAntialias || options.central_fraction < 1) return 0;
  switch (options.mode) {
    case ResizeMode::kStretch:
      return std::max(options.height, options.width);
    case ResizeMode::kCenterCrop:
      return shorter_side(options);
    case ResizeMode::kNone:
    case ResizeMode::kRandomResizedCrop:
      break;  // a small crop may use every pixel
  }
  return 0;
}

TransformOptions evaluation_transform(TransformOptions training) {
  if (training.mode == ResizeMode::kRandomResizedCrop)
    training.mode = training.central_fraction < 1 ? ResizeMode::kStretch : ResizeMode::kCenterCrop;
  training.crop_padding = 0;
  training.flip = false;
  training.color.reset();
  training.color_augmentation.reset();
  training.spatial.reset();
  return training;
}

}  // namespace octet::data

// From an 8-bit image to the floats that a network takes: resize, random crop, random flip, random colors, normalize.
// Where the pixels go (Geometry) and how their colors change (Color) is chosen first, then painted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/color.h"
#include "data/geometry.h"
#include "data/image.h"
#include "data/interpolation.h"
#include "data/pixel_painter.h"
#include "data/spatial.h"

namespace octet::data {

enum class ResizeMode {
  kNone,               // images must have the output size already
  kStretch,            // resize to the output size, whatever the aspect ratio
  kCenterCrop,         // resize the shorter side to `resize`, cut the output size from the middle
  kRandomResizedCrop,  // cut a random rectangle (area and aspect ratio as below), resize it to the output size
};

// Of the channels that the network sees.
enum class ChannelOrder { kRgb, kBgr };
std::span<const schema::EnumName<ChannelOrder>> enum_names(ChannelOrder);

struct TransformOptions {
  int height = 0, width = 0;  // of the output, pixels; 0: as the images (only with kNone)
  ResizeMode mode = ResizeMode::kNone;
  // kCenterCrop, pixels of the shorter side; 0: the longer output side / 0.875, rounded (224 -> 256).
  int64_t resize = 0;
  Interpolation interpolation = Interpolation::kAntialias;  // but for what goes through a matrix (warp.h)
  double central_fraction = 1;                              // kStretch: of height and width, from the middle
  std::vector<double> scale = {0.08, 1.0};          // kRandomResizedCrop: smallest and largest fraction of the image
  std::vector<double> ratio = {0.75, 1.333333333};  // kRandomResizedCrop: smallest and largest width / height
  int64_t crop_padding = 0;  // after resizing: shift by up to this many pixels either way, black beyond the border
  bool flip = false;         // mirror left and right with probability 1/2
  std::optional<ColorOptions> color;                    // absent: colors stay
  std::optional<ColorAugmentation> color_augmentation;  // in place of `color`
  std::optional<PreprocessingOptions> preprocessing;    // kStretch: what part of the image lies where
  std::optional<SpatialOptions> spatial;                // after all of these
  bool tao_compatible = false;  // choose_spatial, preprocessing_matrix with scale_first, Geometry::two_corners
  ChannelOrder order = ChannelOrder::kRgb;
  std::vector<double> mean = {0.0},
                      std = {1.0};  // per channel in that order (or one for all) of x / 255; empty: 0 and 1
};

// Floats per image, in the order of the output (CHW).
struct ImageShape {
  int channels = 0, height = 0, width = 0;
  int64_t size() const { return static_cast<int64_t>(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

// What makes the random choices for one image: the same key gives the same choices, on any thread, in any order.
struct AugmentKey {
  uint64_t seed = 0;
  int64_t epoch = 0, index = 0;
  int64_t repetition = 0;  // how often the epoch had that image before

  CounterRng random(uint64_t stream = 0) const {
    return {seed ^ stream, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index + (repetition << 40))};
  }
};

// Immutable after construction; its members may run on many threads at once.
class Transform {
 public:
  // `first` is an image of the dataset; it decides the number of channels and, where options leave it open, the output
  // size. UserError (exit 2) for options that do not fit together.
  Transform(const TransformOptions& options, const Image& first);

  const ImageShape& output_shape() const { return shape_; }

  // For an image of this size. UserError where it has another than the input's (kNone) or is too long to be resized.
  Geometry choose(int height, int width, const AugmentKey& key) const;
  // Random numbers of its own: the geometry of an image is the same with and without it. Of gray images only brightness
  // and contrast change.
  Color choose_color(const AugmentKey& key) const;
  // Writes output_shape().size() floats, CHW: (color(x / 255) - mean) / std, evaluated in float32; black beyond the
  // border stays black. `geometry` was chosen for an image of this size. UserError for another number of channels.
  void paint(const Image& image, const Geometry& geometry, float* out, const Color& color = {}) const;

 private:
  void paint_warped(const Image& image, const Geometry& geometry, float* out, ptrdiff_t plane,
                    const PixelPainter& painter) const;

  TransformOptions options_;
  ImageShape shape_;
  Normalization normalization_;
};

// kCenterCrop: the length of the shorter side that is cut from, pixels.
int shorter_side(const TransformOptions& options);

// The value for DatasetOptions::min_decode_side that loses nothing which the transform would keep: the side to which
// the images are shrunk anyway, or 0 where they are not.
int decode_hint(const TransformOptions& options);

// The transform for evaluation that belongs to one for training: without random choices; a random resized crop becomes
// a center crop.
TransformOptions evaluation_transform(TransformOptions training);

}  // namespace octet::data

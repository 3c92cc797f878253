#include "data/input_preset.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "image_files.h"

namespace octet::data {
namespace {

using testing::Each;
using testing::HasSubstr;

Image picture(int height, int width) {
  Image image{height, width, 3, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) image.pixels.push_back(static_cast<uint8_t>((x * 7 + y * 13 + c * 29 + x * y) % 256));
  return image;
}

TransformOptions options(InputPreset preset, int height, int width) {
  TransformOptions out{.height = height, .width = width};
  apply(preset, out);
  out.mode = out.resize > 0 ? ResizeMode::kCenterCrop : ResizeMode::kStretch;
  return out;
}

std::vector<float> apply(const TransformOptions& options, const Image& image) {
  const Transform transform(options, image);
  std::vector<float> out(static_cast<size_t>(transform.output_shape().size()), NAN);
  transform.paint(image, transform.choose(image.height, image.width, {}), out.data());
  return out;
}

// The value of a picture between its pixels, whose middles are at whole coordinates; borders go on.
double between(const Image& image, double y, double x, int channel) {
  const auto at = [&](double row, double column) -> double {
    return image.row(
        std::clamp(static_cast<int>(row), 0,
                   image.height - 1))[std::clamp(static_cast<int>(column), 0, image.width - 1) * 3 + channel];
  };
  const double top = std::floor(y), left = std::floor(x), v = y - top, u = x - left;
  return (1 - v) * ((1 - u) * at(top, left) + u * at(top, left + 1)) +
         v * ((1 - u) * at(top + 1, left) + u * at(top + 1, left + 1));
}

// How far the values that the network sees are from value(y, x, c), in the worst place.
template <typename Value>
double distance(const std::vector<float>& seen, int height, int width, Value value) {
  double worst = 0;
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const double v = seen[static_cast<size_t>((c * height + y) * width + x)];
        worst = std::max(worst, std::abs(v - value(y, x, c)));
      }
  return worst;
}

// What Octet rounds to whole values of 0 .. 255 those libraries keep as fractions.
constexpr double kRounding = 0.5 + 1e-3;

uint64_t hash_of(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t b : bytes) hash = (hash ^ b) * 0x100000001b3u;
  return hash;
}

// The hash of Pillow 13.0's resize((350, 256), BILINEAR).crop((63, 16, 287, 240)) of this picture.
TEST(InputPreset, TorchvisionHasTheBitsOfPillow) {
  const std::vector<float> seen = apply(options(InputPreset::kTorchvision, 224, 224), picture(300, 411));
  constexpr double kMean[] = {0.485, 0.456, 0.406}, kStd[] = {0.229, 0.224, 0.225};
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < 224 * 224; ++i)
    for (size_t c = 0; c < 3; ++c)
      bytes.push_back(static_cast<uint8_t>(std::lround((seen[c * 224 * 224 + i] * kStd[c] + kMean[c]) * 255)));
  EXPECT_EQ(hash_of(bytes), 0xe7f6097f2cf4584bu);
}

// tf.image.resize with half-pixel centers and without antialias, then keras.applications' preprocess_input.
TEST(InputPreset, KerasIsStretchedAndScaledByMode) {
  const Image image = picture(61, 90);
  const auto resized = [&](int y, int x, int c) {
    return between(image, (y + 0.5) * 61 / 32 - 0.5, (x + 0.5) * 90 / 40 - 0.5, c);
  };
  EXPECT_LT(distance(apply(options(InputPreset::kKerasTf, 32, 40), image), 32, 40,
                     [&](int y, int x, int c) { return resized(y, x, c) / 127.5 - 1; }),
            kRounding / 127.5);
  constexpr double kBgrMean[] = {103.939, 116.779, 123.68};
  EXPECT_LT(distance(apply(options(InputPreset::kKerasCaffe, 32, 40), image), 32, 40,
                     [&](int y, int x, int c) { return resized(y, x, 2 - c) - kBgrMean[c]; }),
            kRounding);
  constexpr double kMean[] = {0.485, 0.456, 0.406}, kStd[] = {0.229, 0.224, 0.225};
  EXPECT_LT(distance(apply(options(InputPreset::kKerasTorch, 32, 40), image), 32, 40,
                     [&](int y, int x, int c) { return (resized(y, x, c) / 255 - kMean[c]) / kStd[c]; }),
            kRounding / 255 / 0.224);
}

// Enlarged beyond the first middle of a pixel, the border goes on.
TEST(InputPreset, KerasRepeatsTheBorder) {
  const Image image = picture(5, 4);
  EXPECT_LT(distance(apply(options(InputPreset::kKerasTf, 16, 16), image), 16, 16,
                     [&](int y, int x, int c) {
                       const double v = std::clamp((y + 0.5) * 5 / 16 - 0.5, 0.0, 4.0);
                       const double u = std::clamp((x + 0.5) * 4 / 16 - 0.5, 0.0, 3.0);
                       return between(image, v, u, c) / 127.5 - 1;
                     }),
            kRounding / 127.5);
}

// inception_preprocessing.preprocess_for_eval: central_crop(0.875), resize_bilinear, x -> (x - 0.5) * 2.
TEST(InputPreset, InceptionTakesTheMiddle) {
  for (const auto& [height, width] : {std::pair{160, 320}, {75, 101}, {299, 500}}) {
    const Image image = picture(height, width);
    const int top = height / 16, left = width / 16;  // (1 - 0.875) / 2
    const double rows = height - 2 * top, columns = width - 2 * left;
    EXPECT_LT(distance(apply(options(InputPreset::kTfSlimInception, 64, 48), image), 64, 48,
                       [&](int y, int x, int c) {
                         // Beyond the last pixel of the part the part's border goes on.
                         const double v = std::min(y * rows / 64, rows - 1),
                                      u = std::min(x * columns / 48, columns - 1);
                         return (between(image, top + v, left + u, c) / 255 - 0.5) * 2;
                       }),
              kRounding / 127.5)
        << height << " x " << width;
  }
}

// vgg_preprocessing.preprocess_for_eval: the shorter side 256, rounded; central crop, cut down; the mean subtracted.
TEST(InputPreset, VggSubtractsTheMeanOfBytes) {
  for (const auto& size : {std::pair{300, 403}, {401, 280}}) {
    const int height = size.first, width = size.second;  // not a structured binding: Clang 14 cannot capture one
    const Image image = picture(height, width);
    const double scale = 256.0 / std::min(height, width);
    const double rows = std::nearbyint(height * scale), columns = std::nearbyint(width * scale);
    const int top = (static_cast<int>(rows) - 224) / 2, left = (static_cast<int>(columns) - 224) / 2;
    constexpr double kMean[] = {123.68, 116.78, 103.94};
    EXPECT_LT(distance(apply(options(InputPreset::kTfSlimVgg, 224, 224), image), 224, 224,
                       [&](int y, int x, int c) {
                         return between(image, (top + y) * height / rows, (left + x) * width / columns, c) - kMean[c];
                       }),
              kRounding)
        << height << " x " << width;
  }
}

TEST(InputPreset, NoneChangesNothing) {
  TransformOptions kept{.resize = 77, .order = ChannelOrder::kBgr, .mean = {0.25}};
  data::apply(InputPreset::kNone, kept);
  EXPECT_EQ(kept.resize, 77);
  EXPECT_EQ(kept.order, ChannelOrder::kBgr);
  EXPECT_THAT(kept.mean, Each(0.25));
}

TEST(ChannelOrder, TurnsColorsBordersAndMatricesAlike) {
  const Image image = picture(12, 12);
  TransformOptions rgb{.height = 8, .width = 8, .mode = ResizeMode::kStretch, .crop_padding = 3, .flip = true};
  rgb.mean = {0.1, 0.2, 0.3}, rgb.std = {0.4, 0.5, 0.6};
  rgb.color = ColorOptions{};
  TransformOptions bgr = rgb;
  bgr.order = ChannelOrder::kBgr;
  bgr.mean = {0.3, 0.2, 0.1}, bgr.std = {0.6, 0.5, 0.4};
  for (const bool turned : {false, true}) {
    if (turned) rgb.spatial = bgr.spatial = SpatialOptions{.rotate_rad_max = 1};
    const Transform a(rgb, image), b(bgr, image);
    for (int64_t index = 0; index < 8; ++index) {
      const AugmentKey key{.seed = 3, .index = index};
      std::vector<float> in_a(3 * 64), in_b(3 * 64);
      a.paint(image, a.choose(12, 12, key), in_a.data(), a.choose_color(key));
      b.paint(image, b.choose(12, 12, key), in_b.data(), b.choose_color(key));
      for (size_t c = 0; c < 3; ++c)
        for (size_t i = 0; i < 64; ++i) ASSERT_EQ(in_a[c * 64 + i], in_b[(2 - c) * 64 + i]) << index;
    }
  }
}

TEST(ChannelOrder, IsOfThreeChannels) {
  EXPECT_THAT(message_of([] { Transform({.order = ChannelOrder::kBgr}, test_image(4, 4, 1)); }),
              HasSubstr("the order bgr is of 3 channels, images have 1"));
}

TEST(CentralFraction, GoesAloneAndIsKeptInEvaluation) {
  TransformOptions cut{.height = 8, .width = 8, .mode = ResizeMode::kRandomResizedCrop, .central_fraction = 0.5};
  const TransformOptions evaluation = evaluation_transform(cut);
  EXPECT_EQ(evaluation.mode, ResizeMode::kStretch);
  const Geometry g = Transform(evaluation, test_image(40, 60, 3)).choose(40, 60, {});
  EXPECT_EQ(g.source.top, 10);
  EXPECT_EQ(g.source.left, 15);
  EXPECT_EQ(g.source.height, 20);
  EXPECT_EQ(g.source.width, 30);
  EXPECT_EQ(decode_hint(evaluation), 0);
  cut.resize = 9;
  EXPECT_THAT(message_of([&] { Transform(cut, test_image(4, 4, 3)); }), HasSubstr("without another crop"));
}

}  // namespace
}  // namespace octet::data

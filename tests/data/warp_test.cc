// Pixels against a plain sampler, and boxes and masks against the pixels.
#include "data/warp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "data/augment.h"
#include "data/resize.h"
#include "image_files.h"

namespace octet::data {
namespace {

// Every pixel of the output by the definition: its middle goes back through the inverse, found by Cramer's rule, and is
// sampled between the middles of the four pixels around; -1 beside the image.
double sampled(const Image& image, const Affine& m, int x, int y, int c) {
  const double px = x + 0.5 - m.x0, py = y + 0.5 - m.y0, d = m.xx * m.yy - m.xy * m.yx;
  const double qx = (px * m.yy - py * m.xy) / d, qy = (py * m.xx - px * m.yx) / d;
  if (qx < 0 || qx >= image.width || qy < 0 || qy >= image.height) return -1;
  const auto at = [&](int row, int column) {
    return static_cast<double>(
        image.row(std::clamp(row, 0, image.height - 1))[std::clamp(column, 0, image.width - 1) * image.channels + c]);
  };
  const int column = static_cast<int>(std::floor(qx - 0.5)), row = static_cast<int>(std::floor(qy - 0.5));
  const double fx = qx - 0.5 - column, fy = qy - 0.5 - row;
  return (1 - fy) * ((1 - fx) * at(row, column) + fx * at(row, column + 1)) +
         fy * ((1 - fx) * at(row + 1, column) + fx * at(row + 1, column + 1));
}

TEST(Warp, IsOneBilinearSampleWhereNothingShrinks) {
  CounterRng random(5, 6);
  for (const int channels : {1, 3}) {
    const Image image = test_image(23, 37, channels);
    for (int round = 0; round < 60; ++round) {
      SpatialChange change{.hflip = random.below(2) == 0, .vflip = random.below(2) == 0};
      change.radians = round % 3 ? random.uniform(-3, 3) : 0;
      change.zoom = random.uniform(1.01, 2.5);
      change.zoom_x = random.uniform(-10, 20), change.zoom_y = random.uniform(-10, 10);
      const Affine m = change.matrix(31, 45);
      const WarpedImage warp(image, m, 45);
      std::vector<uint8_t> row(45 * static_cast<size_t>(channels));
      for (int y = 0; y < 31; ++y) {
        const Span seen = warp.row(y, row.data());
        for (int x = 0; x < 45; ++x)
          for (int c = 0; c < channels; ++c) {
            const double expected = sampled(image, m, x, y, c);
            ASSERT_EQ(x >= seen.begin && x < seen.end, expected >= 0) << x << " " << y;
            // Half of a step of rounding, and what float32 makes of 255.
            if (expected >= 0) {
              ASSERT_NEAR(row[static_cast<size_t>(x * channels + c)], expected, 0.5 + 255 * 0x1p-20);
            }
          }
      }
    }
  }
}

Image through(const Image& image, const Affine& m, int height, int width) {
  Image out{height, width, image.channels, {}};
  out.pixels.resize(out.size());
  const WarpedImage warp(image, m, width);
  for (int y = 0; y < height; ++y) warp.row(y, out.row(y));
  return out;
}

TEST(Warp, WholePixelsKeepTheirBytes) {
  const Image image = test_image(20, 30, 3);
  EXPECT_EQ(through(image, {}, 20, 30).pixels, image.pixels);
  const Image moved =
      through(image, SpatialChange{.hflip = true, .vflip = true, .translate_x = 4}.matrix(20, 30), 20, 30);
  for (int y = 0; y < 20; ++y)
    for (int x = 4; x < 30; ++x)
      for (int c = 0; c < 3; ++c) ASSERT_EQ(moved.row(y)[x * 3 + c], image.row(19 - y)[(33 - x) * 3 + c]);
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 12; ++x) ASSERT_EQ(moved.row(y)[x], 0);
  // A quarter turn about the middle of a square.
  const Image square = test_image(16, 16, 1);
  const Image turned = through(square, Affine::rotation(std::acos(-1) / 2, 8, 8), 16, 16);
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 16; ++x) ASSERT_EQ(turned.row(x)[15 - y], square.row(y)[x]);
}

TEST(Warp, ShrinksWithTheFilterOfResize) {
  const Image image = test_image(60, 90, 3);
  EXPECT_EQ(through(image, Affine::scaling(0.5, 1.0 / 3), 20, 45).pixels, resize_bilinear(image, 20, 45).pixels);
  // Turned by a half as well.
  const Image turned =
      through(image, Affine::rotation(std::acos(-1), 22.5, 10) * Affine::scaling(0.5, 1.0 / 3), 20, 45);
  const Image straight = resize_bilinear(image, 20, 45);
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 45; ++x)
      for (int c = 0; c < 3; ++c) ASSERT_NEAR(turned.row(y)[x * 3 + c], straight.row(19 - y)[(44 - x) * 3 + c], 1);
}

constexpr int kImageHeight = 90, kWidth = 120;

TransformOptions turned_transform() {
  return {.height = 80,
          .width = 150,
          .mode = ResizeMode::kStretch,
          .crop_padding = 3,
          .flip = true,
          .spatial = SpatialOptions{.hflip_probability = 0.5,
                                    .vflip_probability = 0.5,
                                    .rotate_rad_max = 0.7,
                                    .rotate_probability = 0.8,
                                    .zoom_min = 0.7,
                                    .zoom_max = 1.4,
                                    .translate_max_x = 20,
                                    .translate_max_y = 20}};
}

struct Shown {
  std::optional<vision::Box> extent;  // around the pixels that are at least half as bright
  bool at_the_border = false;         // one of them is
};

Shown shown(const std::vector<float>& pixels, const ImageShape& shape) {
  int x0 = shape.width, y0 = shape.height, x1 = 0, y1 = 0;
  for (int y = 0; y < shape.height; ++y)
    for (int x = 0; x < shape.width; ++x)
      if (pixels[static_cast<size_t>(y * shape.width + x)] >= 0.5f)
        x0 = std::min(x0, x), x1 = std::max(x1, x + 1), y0 = std::min(y0, y), y1 = std::max(y1, y + 1);
  if (x1 <= x0) return {};
  return {vision::Box{static_cast<float>(x0), static_cast<float>(y0), static_cast<float>(x1), static_cast<float>(y1)},
          x0 == 0 || y0 == 0 || x1 == shape.width || y1 == shape.height};
}

TEST(Warp, BoxesAndMasksFollowThePixels) {
  const vision::Box box{31, 20, 83, 61};
  Image image{kImageHeight, kWidth, 1, std::vector<uint8_t>(kImageHeight * kWidth)};
  std::vector<uint8_t> inside(kImageHeight * kWidth, 0);
  for (int y = 20; y < 61; ++y)
    for (int x = 31; x < 83; ++x) image.row(y)[x] = 255, inside[static_cast<size_t>(y * kWidth + x)] = 1;
  const auto mask = std::make_shared<const vision::Mask>(vision::mask_of_pixels(inside, kImageHeight, kWidth));
  const Transform transform(turned_transform(), image);
  const ImageShape& shape = transform.output_shape();
  std::vector<float> pixels(static_cast<size_t>(shape.size()));
  int whole = 0, cut = 0;
  int64_t wrong = 0, set = 0;
  for (int64_t index = 0; index < 400; ++index) {
    const Geometry geometry = transform.choose(kImageHeight, kWidth, {.seed = 5, .index = index});
    transform.paint(image, geometry, pixels.data());
    const Annotation there = moved({.objects = {{.box = box, .label = 7, .mask = mask}}}, geometry);
    const Shown seen = shown(pixels, shape);
    if (there.objects.empty() || !seen.extent) continue;
    const vision::Box& b = there.objects[0].box;
    // Every corner loses up to a pixel of what is between black and white.
    EXPECT_GE(seen.extent->x0, b.x0 - 1.01f) << index;
    EXPECT_GE(seen.extent->y0, b.y0 - 1.01f) << index;
    EXPECT_LE(seen.extent->x1, b.x1 + 1.01f) << index;
    EXPECT_LE(seen.extent->y1, b.y1 + 1.01f) << index;
    if (seen.at_the_border) {
      ++cut;  // what is cut of a turned rectangle may have had its corners: the box may be larger
    } else {
      ++whole;
      EXPECT_NEAR(b.x0, seen.extent->x0, 1.7f) << index;
      EXPECT_NEAR(b.y0, seen.extent->y0, 1.7f) << index;
      EXPECT_NEAR(b.x1, seen.extent->x1, 1.7f) << index;
      EXPECT_NEAR(b.y1, seen.extent->y1, 1.7f) << index;
    }
    const std::vector<uint8_t> found = vision::pixels(*there.objects[0].mask);
    for (size_t i = 0; i < found.size(); ++i) {
      set += found[i];
      wrong += found[i] != (pixels[i] >= 0.5f);
      ASSERT_FALSE(found[i] ? pixels[i] < 0.1f : pixels[i] > 0.9f) << index << " pixel " << i;
    }
    const vision::Box back = geometry.to_image(geometry.to_input(box));
    EXPECT_LE(back.x0, box.x0 + 1e-3f);
    EXPECT_GE(back.y1, box.y1 - 1e-3f);
  }
  EXPECT_GT(whole, 100);
  EXPECT_GT(cut, 50);
  EXPECT_LT(wrong, set / 50);
}

// Quirk 26 of TAO's: a turned box goes through two corners. At 45 degrees a square loses half of its area.
TEST(Warp, CompatibleWithTaoTurnedBoxesGoThroughTwoCorners) {
  TransformOptions options = turned_transform();
  const Image image{kImageHeight, kWidth, 1, std::vector<uint8_t>(kImageHeight * kWidth)};
  options.tao_compatible = true;
  EXPECT_TRUE(Transform(options, image).choose(kImageHeight, kWidth, {}).two_corners);
  Geometry geometry = Geometry::whole(100, 100);
  geometry.warp = Affine::rotation(std::acos(-1) / 4, 50, 50);
  const vision::Box box{40, 40, 60, 60};
  const float reach = 10 * std::sqrt(2.0f);
  const vision::Box four = geometry.to_input(box);
  EXPECT_NEAR(four.x0, 50 - reach, 1e-4f);
  EXPECT_NEAR(four.y0, 50 - reach, 1e-4f);
  EXPECT_NEAR(four.x1, 50 + reach, 1e-4f);
  EXPECT_NEAR(four.y1, 50 + reach, 1e-4f);
  geometry.two_corners = true;
  const vision::Box two = geometry.to_input(box);  // from the top to the bottom corner: nothing is left of its width
  EXPECT_NEAR(two.width(), 0, 1e-4f);
  EXPECT_NEAR(two.y0, 50 - reach, 1e-4f);
  EXPECT_NEAR(two.y1, 50 + reach, 1e-4f);
}

TEST(Warp, ImagesThatAreNotResizedLieInTheCorner) {
  const Image image = test_image(20, 30, 3);
  TransformOptions options{.height = 25, .width = 28, .mode = ResizeMode::kStretch, .mean = {0.25}};
  options.preprocessing = PreprocessingOptions{.enable_auto_resize = false};
  const Transform transform(options, image);
  const Geometry geometry = transform.choose(20, 30, {});
  std::vector<float> out(static_cast<size_t>(transform.output_shape().size()), NAN);
  transform.paint(image, geometry, out.data());
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 25; ++y)
      for (int x = 0; x < 28; ++x)
        ASSERT_EQ(out[static_cast<size_t>((c * 25 + y) * 28 + x)],
                  (y < 20 ? static_cast<float>(image.row(y)[x * 3 + c]) / 255.0f : 0.0f) - 0.25f);
  EXPECT_EQ(geometry.visible(), (vision::Box{0, 0, 28, 20}));
  const Annotation there = moved({.objects = {{.box = {20, 4, 30, 10}}, {.box = {28, 0, 30, 10}}}}, geometry);
  ASSERT_EQ(there.objects.size(), 1u);
  EXPECT_EQ(there.objects[0].box, (vision::Box{20, 4, 28, 10}));
}

TEST(Warp, ACutInsideTheImageIsResizedAsAnyOther) {
  const Image image = test_image(40, 60, 3);
  TransformOptions options{.height = 30, .width = 30, .mode = ResizeMode::kStretch};
  options.preprocessing = PreprocessingOptions{.crop_left = 10, .crop_top = 5, .crop_right = 50, .crop_bottom = 35};
  const Transform transform(options, image);
  const Geometry inside = transform.choose(40, 60, {});
  EXPECT_FALSE(inside.warp);
  std::vector<float> out(30 * 30 * 3);
  transform.paint(image, inside, out.data());
  const Image expected = resize_bilinear(image, {5, 10, 30, 40}, 30, 30);
  for (int i = 0; i < 900; ++i)
    ASSERT_EQ(out[static_cast<size_t>(i)], static_cast<float>(expected.pixels[static_cast<size_t>(3 * i)]) / 255.0f);
  // A smaller image: the same matrix, and black beyond it.
  const Geometry beyond = transform.choose(20, 45, {});
  ASSERT_TRUE(beyond.warp);
  EXPECT_EQ(beyond.to_input({10, 5, 50, 35}), (vision::Box{0, 0, 30, 30}));
  EXPECT_EQ(beyond.visible(), (vision::Box{0, 0, 26.25f, 15}));
  EXPECT_EQ(decode_hint(options), 0);
}

TEST(Warp, SmallObjectsAreLeftOutAsTheyAreSeen) {
  Geometry geometry = Geometry::whole(100, 200);
  geometry.warp = Affine::translation(-50, 0);
  const Annotation truth{.objects = {{.box = {40, 10, 58, 30}, .label = 1},
                                     {.box = {60, 10, 80, 18}, .label = 2},
                                     {.box = {60, 10, 68, 20}, .label = 3}}};
  EXPECT_EQ(moved(truth, geometry).objects.size(), 3u);
  const Annotation there = moved(truth, geometry, {.min_width = 8, .min_height = 10});
  ASSERT_EQ(there.objects.size(), 2u);  // 8 x 20 of the first, all of the third: as large as asked for
  EXPECT_EQ(there.objects[0].label, 1);
  EXPECT_EQ(there.objects[1].label, 3);
  EXPECT_EQ(moved(truth, geometry, {.min_width = 9}).objects.size(), 1u);
}

TEST(Warp, ChoosesByKeyAloneAndLeavesTheRestAsItWas) {
  const Image image = test_image(kImageHeight, kWidth, 3);
  TransformOptions options = turned_transform();
  const Transform transform(options, image);
  options.spatial.reset();
  const Transform without(options, image);
  options.spatial = SpatialOptions{};
  const Transform nothing(options, image);
  for (int64_t index = 0; index < 50; ++index) {
    const AugmentKey key{.seed = 3, .epoch = 5, .index = index};
    const Geometry a = transform.choose(kImageHeight, kWidth, key), b = without.choose(kImageHeight, kWidth, key);
    EXPECT_EQ(a.warp, transform.choose(kImageHeight, kWidth, key).warp);
    EXPECT_NE(a.warp, transform.choose(kImageHeight, kWidth, {.seed = 3, .epoch = 6, .index = index}).warp);
    EXPECT_EQ(a.shift_x, b.shift_x);
    EXPECT_EQ(a.mirrored, b.mirrored);
    EXPECT_FALSE(nothing.choose(kImageHeight, kWidth, key).warp);
    // Without random changes the matrix says what the fields say.
    const vision::Box box{3, 4, 50, 60}, there = b.to_input(box);
    const Point p = b.matrix()(b.mirrored ? box.x1 : box.x0, box.y0);
    EXPECT_NEAR(p.x, there.x0, 1e-3);
    EXPECT_NEAR(p.y, there.y0, 1e-3);
  }
  EXPECT_FALSE(evaluation_transform(turned_transform()).spatial.has_value());
}

}  // namespace
}  // namespace octet::data

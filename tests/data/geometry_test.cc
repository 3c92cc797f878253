// Boxes follow the pixels: where a painted picture shows a bright rectangle, there lies its moved box.
#include "data/geometry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>

#include "data/augment.h"

namespace octet::data {
namespace {

constexpr int kHeight = 90, kWidth = 120;

// Black but for the pixels of `box`, whose borders are whole numbers.
Image image_of(const vision::Box& box) {
  Image image{kHeight, kWidth, 1, std::vector<uint8_t>(kHeight * kWidth)};
  for (int y = static_cast<int>(box.y0); y < static_cast<int>(box.y1); ++y)
    for (int x = static_cast<int>(box.x0); x < static_cast<int>(box.x1); ++x) image.row(y)[x] = 255;
  return image;
}

// Around the pixels that are at least half as bright; nothing where none is.
std::optional<vision::Box> bright(const std::vector<float>& pixels, const ImageShape& shape) {
  int x0 = shape.width, y0 = shape.height, x1 = 0, y1 = 0;
  for (int y = 0; y < shape.height; ++y)
    for (int x = 0; x < shape.width; ++x)
      if (pixels[static_cast<size_t>(y * shape.width + x)] >= 0.5f)
        x0 = std::min(x0, x), x1 = std::max(x1, x + 1), y0 = std::min(y0, y), y1 = std::max(y1, y + 1);
  if (x1 <= x0) return std::nullopt;
  return vision::Box{static_cast<float>(x0), static_cast<float>(y0), static_cast<float>(x1), static_cast<float>(y1)};
}

TransformOptions sized(ResizeMode mode, int height, int width) {
  return {.height = height, .width = width, .mode = mode};
}

// All four ways of choosing a geometry, with shifts and mirror images.
std::vector<TransformOptions> every_transform() {
  std::vector<TransformOptions> all = {sized(ResizeMode::kNone, 0, 0), sized(ResizeMode::kStretch, 64, 150),
                                       sized(ResizeMode::kCenterCrop, 48, 64),
                                       sized(ResizeMode::kRandomResizedCrop, 60, 80)};
  all[2].resize = 70;
  all[3].scale = {0.3, 1};
  for (TransformOptions& options : all) {
    options.crop_padding = 25;
    options.flip = true;
  }
  return all;
}

TEST(Geometry, BoxesFollowThePixels) {
  const vision::Box box{31, 20, 83, 61};
  const Image image = image_of(box);
  int seen = 0, cut = 0;
  for (const TransformOptions& options : every_transform()) {
    const Transform transform(options, image);
    const ImageShape& shape = transform.output_shape();
    std::vector<float> pixels(static_cast<size_t>(shape.size()));
    for (int64_t index = 0; index < 200; ++index) {
      const Geometry geometry = transform.choose(kHeight, kWidth, {.seed = 5, .index = index});
      transform.paint(image, geometry, pixels.data());
      const Annotation there = moved({.label = 3, .objects = {{.box = box, .label = 7}}, .weight = 0.5f}, geometry);
      EXPECT_EQ(there.label, 3);
      EXPECT_EQ(there.weight, 0.5f);
      const std::optional<vision::Box> expected = bright(pixels, shape);
      if (!expected || there.objects.empty()) {
        // At most a sliver of less than a pixel.
        EXPECT_LE(there.objects.empty() ? 0 : vision::area(there.objects[0].box),
                  1.5f * static_cast<float>(shape.height));
        continue;
      }
      ++seen;
      const vision::Box& b = there.objects[0].box;
      cut += vision::area(b) + 1 < vision::area(geometry.to_input(box));
      // Half a pixel of what lies between, and half a pixel of rounding.
      EXPECT_NEAR(b.x0, expected->x0, 1.01f) << index;
      EXPECT_NEAR(b.y0, expected->y0, 1.01f) << index;
      EXPECT_NEAR(b.x1, expected->x1, 1.01f) << index;
      EXPECT_NEAR(b.y1, expected->y1, 1.01f) << index;
    }
  }
  EXPECT_GT(seen, 600);
  EXPECT_GT(cut, 50);
}

TEST(Geometry, LeadsBackToTheImage) {
  TransformOptions options = sized(ResizeMode::kRandomResizedCrop, 60, 80);
  options.flip = true;
  options.crop_padding = 4;
  const Transform transform(options, image_of({0, 0, 1, 1}));
  for (int64_t index = 0; index < 50; ++index) {
    const Geometry geometry = transform.choose(kHeight, kWidth, {.index = index});
    const vision::Box box{10.5f, 3, 60, 41.25f}, back = geometry.to_image(geometry.to_input(box));
    EXPECT_NEAR(back.x0, box.x0, 1e-3f);
    EXPECT_NEAR(back.y0, box.y0, 1e-3f);
    EXPECT_NEAR(back.x1, box.x1, 1e-3f);
    EXPECT_NEAR(back.y1, box.y1, 1e-3f);
  }
}

TEST(Geometry, CutsAndLeavesOut) {
  Geometry geometry = Geometry::whole(100, 200);
  geometry.shift_x = 50;  // the leftmost 50 pixels are gone, the rightmost 50 of the input are black
  const Annotation truth{.label = -1,
                         .objects = {{.box = {0, 0, 40, 100}, .label = 1},       // gone
                                     {.box = {40, 10, 60, 20}, .label = 2},      // half of it
                                     {.box = {190, 10, 210, 20}, .label = 3}}};  // beyond the image
  const Annotation there = moved(truth, geometry);
  ASSERT_EQ(there.objects.size(), 2u);
  EXPECT_EQ(there.objects[0].box, (vision::Box{0, 10, 10, 20}));
  EXPECT_EQ(there.objects[1].box, (vision::Box{140, 10, 150, 20}));
  EXPECT_TRUE(moved(truth, geometry, {.min_visible = 0.5f}).objects.empty());
  geometry.mirrored = true;
  EXPECT_EQ(moved(truth, geometry).objects[0].box, (vision::Box{190, 10, 200, 20}));
}

// Of the pixels that are set; 0 or 1 each.
Image image_of(const std::vector<uint8_t>& pixels) {
  Image image{kHeight, kWidth, 1, pixels};
  for (uint8_t& pixel : image.pixels) pixel *= 255;
  return image;
}

TEST(Geometry, MasksFollowThePixels) {
  // An L, so that turning it over shows: thick enough that its inside is clear of what resizing blurs.
  std::vector<uint8_t> shape(kHeight * kWidth, 0);
  for (int y = 10; y < 80; ++y)
    for (int x = 20; x < (y < 50 ? 55 : 100); ++x) shape[static_cast<size_t>(y * kWidth + x)] = 1;
  const Image image = image_of(shape);
  const vision::Mask mask = vision::mask_of_pixels(shape, kHeight, kWidth);
  int64_t wrong = 0, all = 0, set = 0;
  for (const TransformOptions& options : every_transform()) {
    const Transform transform(options, image);
    std::vector<float> painted(static_cast<size_t>(transform.output_shape().size()));
    for (int64_t index = 0; index < 50; ++index) {
      const Geometry geometry = transform.choose(kHeight, kWidth, {.seed = 5, .index = index});
      transform.paint(image, geometry, painted.data());
      const vision::Mask there = moved(mask, geometry);
      ASSERT_EQ(there.height(), transform.output_shape().height);
      ASSERT_EQ(there.width(), transform.output_shape().width);
      const std::vector<uint8_t> found = vision::pixels(there);
      for (size_t i = 0; i < found.size(); ++i) {
        set += found[i], ++all;
        wrong += found[i] != (painted[i] >= 0.5f);
        // Only at the border, where resizing blurs, may nearest neighbor and what is painted differ.
        ASSERT_FALSE(found[i] ? painted[i] < 0.2f : painted[i] > 0.8f) << index << " pixel " << i;
      }
    }
  }
  EXPECT_GT(set, all / 10);
  EXPECT_LT(wrong, all / 100);
}

TEST(Geometry, MasksKeepEveryPixelWhereNothingIsResized) {
  std::vector<uint8_t> shape(kHeight * kWidth);
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = i * i % 7 < 3;
  const Image image = image_of(shape);
  const Transform transform(every_transform()[0], image);
  std::vector<float> painted(shape.size());
  for (int64_t index = 0; index < 20; ++index) {
    const Geometry geometry = transform.choose(kHeight, kWidth, {.index = index});
    transform.paint(image, geometry, painted.data());
    const std::vector<uint8_t> found = vision::pixels(moved(vision::mask_of_pixels(shape, kHeight, kWidth), geometry));
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], painted[i] > 0.5f) << index;
  }
}

TEST(Geometry, AnEnlargedMaskRepeatsItsPixels) {
  Geometry geometry = Geometry::whole(2, 2);
  geometry.height = geometry.resized_height = 4;
  geometry.width = geometry.resized_width = 6;
  const vision::Mask mask = vision::mask_of_pixels(std::vector<uint8_t>{1, 0, 0, 1}, 2, 2);
  EXPECT_EQ(vision::pixels(moved(mask, geometry)),
            (std::vector<uint8_t>{1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
}

TEST(Geometry, OthersMoveWithTheObjects) {
  Geometry geometry = Geometry::whole(100, 200);
  geometry.mirrored = true;
  geometry.shift_y = 50;
  const auto name = std::make_shared<const std::string>("DontCare");
  const Annotation truth{.label = -1,
                         .objects = {},
                         .others = {{.box = {40, 10, 60, 70}, .label = -1, .source_class = name},
                                    {.box = {40, 10, 60, 50}, .label = -1, .source_class = name}}};
  // A rule that leaves out small objects is about what is learned.
  const Annotation there = moved(truth, geometry, {.min_visible = 0.9f, .min_height = 40});
  ASSERT_EQ(there.others.size(), 1u);
  EXPECT_EQ(there.others[0].box, (vision::Box{140, 0, 160, 20}));
  EXPECT_EQ(*there.others[0].source_class, "DontCare");
}

TEST(Geometry, ObjectsTakeTheirMasksAlong) {
  const auto box_mask = [](int x0, int x1) {
    std::vector<uint8_t> pixels(100 * 200, 0);
    for (int y = 10; y < 20; ++y)
      for (int x = x0; x < x1; ++x) pixels[static_cast<size_t>(y * 200 + x)] = 1;
    return std::make_shared<const vision::Mask>(vision::mask_of_pixels(pixels, 100, 200));
  };
  Geometry geometry = Geometry::whole(100, 200);
  geometry.shift_x = 50;
  const Annotation truth{.label = -1,
                         .objects = {{.box = {40, 10, 60, 20}, .label = 1, .mask = box_mask(40, 60)},
                                     {.box = {40, 10, 60, 20}, .label = 2, .mask = box_mask(40, 45)},  // none is left
                                     {.box = {60, 10, 80, 20}, .label = 3}}};
  const Annotation there = moved(truth, geometry);
  ASSERT_EQ(there.objects.size(), 2u);
  ASSERT_TRUE(there.objects[0].mask);
  EXPECT_EQ(vision::bounds(*there.objects[0].mask), there.objects[0].box);
  EXPECT_EQ(vision::area(*there.objects[0].mask), 100);
  EXPECT_EQ(vision::area(*truth.objects[0].mask), 200);  // that of the image stays as it is
  EXPECT_EQ(there.objects[1].label, 3);
  EXPECT_FALSE(there.objects[1].mask);
}

}  // namespace
}  // namespace octet::data

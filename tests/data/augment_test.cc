#include "data/augment.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "data/counter_rng.h"
#include "data/resize.h"
#include "image_files.h"

namespace octet::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

uint64_t fnv(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint8_t b : bytes) hash = (hash ^ b) * 0x100000001b3u;
  return hash;
}

Image pillow_image(int height, int width, int channels) {
  Image image{height, width, channels, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        image.pixels.push_back(static_cast<uint8_t>((x * 7 + y * 13 + c * 29 + x * y) % 256));
  return image;
}

// Hashes of what Pillow 13.0's Image.resize((width, height), BILINEAR) makes of the same pictures; the third, where one
// side grows, by two calls, width first.
TEST(Resize, HasTheBitsOfPillow) {
  struct Case {
    int h, w, c, out_h, out_w;
    uint64_t hash;
  };
  for (const Case& t : {Case{47, 61, 3, 31, 20, 0x2e56cf52bc46438cu}, Case{20, 30, 3, 53, 41, 0xf7aa5ecbb464813bu},
                        Case{64, 64, 1, 7, 90, 0x8da7a67e2bd3cc8eu}, Case{33, 50, 3, 33, 25, 0xac0f42c6bd3abcd9u},
                        Case{300, 211, 1, 28, 28, 0xe836ffc06493de82u}})
    EXPECT_EQ(fnv(resize_bilinear(pillow_image(t.h, t.w, t.c), t.out_h, t.out_w).pixels), t.hash) << t.h << "x" << t.w;
  EXPECT_EQ(fnv(resize_bilinear(pillow_image(47, 61, 3), {5, 10, 30, 40}, 16, 16).pixels), 0xe342042f9f45449fu);
}

TEST(Resize, SameSizeIsACopy) {
  const Image image = test_image(7, 9, 3);
  EXPECT_EQ(resize_bilinear(image, 7, 9).pixels, image.pixels);
}

TEST(Resize, APartIsAPartOfTheWhole) {
  const Image image = pillow_image(60, 45, 3);
  for (const auto& [h, w] : {std::pair{33, 70}, {60, 20}, {90, 45}, {60, 45}, {17, 12}}) {
    const Image whole = resize_bilinear(image, h, w);
    const Region part{h / 5, w / 4, h / 2, w / 3};
    EXPECT_EQ(resize_bilinear_part(image, h, w, part).pixels,
              resize_bilinear(whole, part, part.height, part.width).pixels)
        << h << " x " << w;
  }
}

std::vector<float> apply(const TransformOptions& options, const Image& image, const AugmentKey& key = {}) {
  const Transform transform(options, image);
  std::vector<float> out(static_cast<size_t>(transform.output_shape().size()), NAN);
  transform.paint(image, transform.choose(image.height, image.width, key), out.data());
  return out;
}

TEST(Transform, NormalizesToPlanes) {
  const Image image{1, 2, 3, {0, 51, 102, 255, 204, 153}};
  const std::vector<float> out = apply({.mean = {0.1f, 0.2f, 0.3f}, .std = {0.5f}}, image);
  const std::vector<float> expected{(0 / 255.0f - 0.1f) / 0.5f,   (255 / 255.0f - 0.1f) / 0.5f,
                                    (51 / 255.0f - 0.2f) / 0.5f,  (204 / 255.0f - 0.2f) / 0.5f,
                                    (102 / 255.0f - 0.3f) / 0.5f, (153 / 255.0f - 0.3f) / 0.5f};
  EXPECT_EQ(out, expected);
}

// Every crop is the picture moved by whole pixels with black behind it, all offsets occur, and so does the mirror
// image.
TEST(Transform, RandomCropAndFlipMoveAndMirror) {
  constexpr int kPad = 2, kSide = 6;
  const Image image = test_image(kSide, kSide, 3);
  const TransformOptions options{.crop_padding = kPad, .flip = true};
  std::set<std::tuple<int, int, bool>> seen;
  for (int64_t index = 0; index < 1500; ++index) {
    const std::vector<float> out = apply(options, image, {.seed = 5, .epoch = 1, .index = index});
    int matches = 0;
    for (int dy = -kPad; dy <= kPad; ++dy)
      for (int dx = -kPad; dx <= kPad; ++dx)
        for (bool flip : {false, true}) {
          bool same = true;
          for (int c = 0; c < 3 && same; ++c)
            for (int y = 0; y < kSide && same; ++y)
              for (int x = 0; x < kSide && same; ++x) {
                const int sy = y + dy, sx = (flip ? kSide - 1 - x : x) + dx;
                const bool inside = sy >= 0 && sy < kSide && sx >= 0 && sx < kSide;
                const float expected = inside ? image.row(sy)[sx * 3 + c] / 255.0f : 0.0f;
                same = out[static_cast<size_t>((c * kSide + y) * kSide + x)] == expected;
              }
          if (same) {
            ++matches;
            seen.insert({dy, dx, flip});
          }
        }
    ASSERT_EQ(matches, 1) << index;
  }
  EXPECT_EQ(seen.size(), 50u);
}

TEST(Transform, PaddingWiderThanTheImageIsBlack) {
  const Image image{1, 1, 1, {255}};
  int white = 0;
  for (int64_t index = 0; index < 300; ++index) white += apply({.crop_padding = 3}, image, {.index = index})[0] == 1.0f;
  EXPECT_GT(white, 0);
  EXPECT_LT(white, 40);  // 1 of 49 on average
}

TEST(Transform, CenterCropIsResizeThenMiddle) {
  const Image image = pillow_image(60, 90, 3);
  const std::vector<float> out =
      apply({.height = 24, .width = 24, .mode = ResizeMode::kCenterCrop, .resize = 30}, image);
  const Image resized = resize_bilinear(image, 30, 45);
  const int top = 3, left = 10;  // round half to even of (45 - 24) / 2
  for (int y = 0; y < 24; ++y)
    for (int x = 0; x < 24; ++x)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(out[static_cast<size_t>((c * 24 + y) * 24 + x)], resized.row(top + y)[(left + x) * 3 + c] / 255.0f);
}

TEST(Transform, CenterCropOfALongPictureMakesOnlyTheMiddle) {
  const Image strip = test_image(1, 1000000, 1);  // enlarged in full it would have 50 thousand million pixels
  const TransformOptions options{.height = 224, .width = 224, .mode = ResizeMode::kCenterCrop};
  EXPECT_EQ(apply(options, strip).size(), 224u * 224u);
  EXPECT_THAT(message_of([&] { apply(options, test_image(1, 10000000, 1)); }), HasSubstr("too long"));
}

TEST(Transform, RandomResizedCropStaysInsideAndVaries) {
  const TransformOptions options{.height = 8, .width = 8, .mode = ResizeMode::kRandomResizedCrop};
  std::set<std::vector<float>> results;
  for (int64_t index = 0; index < 50; ++index)
    results.insert(apply(options, pillow_image(40, 31, 3), {.seed = 1, .index = index}));
  EXPECT_GT(results.size(), 45u);
  for (const Image& odd : {test_image(1, 200, 3), test_image(200, 1, 1), test_image(1, 1, 3)})
    for (int64_t index = 0; index < 20; ++index)
      for (float v : apply(options, odd, {.index = index})) ASSERT_TRUE(v >= 0 && v <= 1);
}

TEST(Transform, ChoicesDependOnSeedEpochAndIndexOnly) {
  const TransformOptions options{.crop_padding = 4, .flip = true};
  const Image image = test_image(28, 28, 1);
  const auto first = apply(options, image, {1, 2, 3});
  EXPECT_EQ(first, apply(options, image, {1, 2, 3}));
  EXPECT_NE(first, apply(options, image, {2, 2, 3}));
  EXPECT_NE(first, apply(options, image, {1, 3, 3}));
  EXPECT_NE(first, apply(options, image, {1, 2, 4}));
}

TEST(Transform, RefusesOptionsAndImagesThatDoNotFit) {
  const Image image = test_image(8, 8, 3);
  const auto error = [&](const TransformOptions& o) { return message_of([&] { Transform(o, image); }); };
  EXPECT_THAT(error({.mean = {0, 0}}), HasSubstr("2 values of mean for images of 3 channels"));
  EXPECT_THAT(error({.std = {0}}), HasSubstr("stddev 0"));
  EXPECT_THAT(error({.mode = ResizeMode::kStretch}), HasSubstr("output height"));
  EXPECT_THAT(error({.height = 9, .width = 9, .mode = ResizeMode::kCenterCrop, .resize = 8}),
              HasSubstr("at least the crop"));
  EXPECT_THAT(error({.crop_padding = -1}), HasSubstr("negative"));
  EXPECT_THAT(message_of([&] { apply({.height = 9}, image); }), HasSubstr("is 8 x 8 pixels"));
}

TEST(Transform, HintAndEvaluationFollowTheMode) {
  const TransformOptions training{
      .height = 224, .width = 224, .mode = ResizeMode::kRandomResizedCrop, .crop_padding = 1, .flip = true};
  EXPECT_EQ(decode_hint(training), 0);
  const TransformOptions evaluation = evaluation_transform(training);
  EXPECT_EQ(decode_hint(evaluation), 256);
  EXPECT_FALSE(evaluation.flip);
  EXPECT_EQ(evaluation.crop_padding, 0);
}

TEST(CounterRng, IsUniformEnoughAndInRange) {
  std::vector<int> counts(10);
  CounterRng random(1, 2, 3);
  for (int i = 0; i < 100000; ++i) counts[static_cast<size_t>(random.below(10))]++;
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);  // 5 standard deviations
  double sum = 0;
  for (int64_t i = 0; i < 10000; ++i) sum += CounterRng(9, 0, static_cast<uint64_t>(i)).uniform();
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);
}

}  // namespace
}  // namespace octet::data

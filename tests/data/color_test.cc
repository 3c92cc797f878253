#include "data/color.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "data/augment.h"
#include "image_files.h"

namespace octet::data {
namespace {

using Rgb = std::array<double, 3>;

Rgb through(const Color& color, const Rgb& in) {
  Rgb out;
  for (size_t c = 0; c < 3; ++c) {
    const auto& row = color.rows[c];
    out[c] = row[0] * in[0] + row[1] * in[1] + row[2] * in[2] + row[3];
  }
  return out;
}

double gray(const Rgb& c) {
  return 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2];
}

void expect_near(const Rgb& is, const Rgb& wanted, double tolerance = 1e-12) {
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(is[c], wanted[c], tolerance) << "channel " << c;
}

const Rgb kSome[] = {{0, 0, 0}, {1, 1, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0.25, 0.5, 0.125}, {0.9, 0.1, 0.4}};

TEST(Color, NothingChosenIsExactlyNothing) {
  EXPECT_EQ(Color::of({}), Color());
  EXPECT_TRUE(Color::of({}).is_identity());
  EXPECT_FALSE(Color().mixes());
  CounterRng random(1, 2, 3);
  EXPECT_TRUE(Color::of(choose_color(ColorOptions{}, random)).is_identity());
  EXPECT_TRUE(Color::of(choose_color(ColorAugmentation{}, random)).is_identity());
}

// What torchvision's adjust_brightness and adjust_saturation do to floats, before they cut to 0 .. 1; contrast about
// the middle gray, as TAO has it.
TEST(Color, FactorsBlendWithBlackMiddleGrayAndOwnGray) {
  for (const Rgb& c : kSome)
    for (const double factor : {0.0, 0.4, 1.0, 1.7}) {
      const auto blend = [&](const Rgb& other) {
        Rgb out;
        for (size_t i = 0; i < 3; ++i) out[i] = factor * c[i] + (1 - factor) * other[i];
        return out;
      };
      expect_near(through(Color::of({.brightness = factor}), c), blend({0, 0, 0}));
      expect_near(through(Color::of({.contrast = factor}), c), blend({0.5, 0.5, 0.5}));
      expect_near(through(Color::of({.saturation = factor}), c), blend({gray(c), gray(c), gray(c)}));
    }
}

// TAO's hue_saturation_matrix with the digits that it has (1.05 is 1.0465 in full), for vectors that stand left of the
// matrix; it turns the other way.
TEST(Color, HueAndSaturationAreThoseOfTao) {
  constexpr double kConst[3] = {0.299, 0.587, 0.114};
  constexpr double kCosine[3][3] = {{0.701, -0.299, -0.300}, {-0.587, 0.413, -0.588}, {-0.114, -0.114, 0.886}};
  constexpr double kSine[3][3] = {{0.168, -0.328, 1.25}, {0.330, 0.035, -1.05}, {-0.497, 0.292, -0.203}};
  for (const double degrees : {-140.0, -25.0, 0.0, 10.0, 90.0, 180.0})
    for (const double saturation : {0.0, 0.8, 1.0, 1.2}) {
      const Color color = Color::of({.saturation = saturation, .hue = -degrees / 360});
      const double angle = degrees * std::numbers::pi / 180;
      for (size_t from = 0; from < 3; ++from)
        for (size_t to = 0; to < 3; ++to)
          EXPECT_NEAR(color.rows[to][from],
                      kConst[from] + saturation * std::cos(angle) * kCosine[from][to] +
                          saturation * std::sin(angle) * kSine[from][to],
                      5e-3 * saturation + 1e-12)
              << degrees << " " << saturation << " " << from << " " << to;
    }
}

TEST(Color, HueTurnsColorsAndKeepsGrays) {
  for (const Rgb& c : kSome) {
    expect_near(through(Color::of({.hue = 1}), c), c);  // all around
    for (const double turns : {-0.4, -0.1, 0.07, 0.5}) {
      const Rgb turned = through(Color::of({.hue = turns}), c);
      EXPECT_NEAR(gray(turned), gray(c), 1e-12);
      expect_near(through(Color::of({.hue = -turns}), turned), c);
      expect_near(through(Color::of({.hue = 0.3}), turned), through(Color::of({.hue = turns + 0.3}), c));
      expect_near(through(Color::of({.hue = turns}), {0.3, 0.3, 0.3}), {0.3, 0.3, 0.3});
    }
  }
  const Rgb orange = through(Color::of({.hue = 1.0 / 12}), {1, 0, 0});
  EXPECT_GT(orange[1], orange[2]);  // towards yellow
}

TEST(Color, SaturationComesBeforeContrastAndBrightnessLast) {
  const ColorChange change{.brightness = 1.2, .contrast = 0.7, .saturation = 1.4, .hue = 0.05};
  for (const Rgb& c : kSome) {
    Rgb expected = through(Color::of({.saturation = 1.4, .hue = 0.05}), c);
    expected = through(Color::of({.contrast = 0.7}), expected);
    expected = through(Color::of({.brightness = 1.2}), expected);
    expect_near(through(Color::of(change), c), expected);
  }
}

TEST(Color, DrawsAreUniformWithinReachAndOptionsDoNotDisturbOneAnother) {
  const ColorOptions options{.brightness = 0.5, .contrast = 0.25, .saturation = 1, .hue = 0.125};
  double low[4] = {9, 9, 9, 9}, high[4] = {-9, -9, -9, -9}, sum[4] = {};
  constexpr int kDraws = 4000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    CounterRng random(7, 0, i), again(7, 0, i), alone(7, 0, i);
    const ColorChange change = choose_color(options, random);
    EXPECT_EQ(Color::of(change), Color::of(choose_color(options, again)));
    EXPECT_EQ(choose_color(ColorOptions{.hue = 0.125}, alone).hue, change.hue);
    const double values[] = {change.brightness, change.contrast, change.saturation, change.hue};
    for (size_t k = 0; k < 4; ++k) {
      low[k] = std::min(low[k], values[k]);
      high[k] = std::max(high[k], values[k]);
      sum[k] += values[k];
    }
  }
  const double middle[] = {1, 1, 1, 0}, reach[] = {0.5, 0.25, 1, 0.125};
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_GE(low[k], middle[k] - reach[k]);
    EXPECT_LE(high[k], middle[k] + reach[k]);
    // Of 4000 draws the extreme ones come within 1 % of the width (but for one in 10^17), and the mean within
    // 5 deviations, reach / sqrt(3 * 4000) each.
    EXPECT_LT(low[k], middle[k] - 0.98 * reach[k]);
    EXPECT_GT(high[k], middle[k] + 0.98 * reach[k]);
    EXPECT_NEAR(sum[k] / kDraws, middle[k], 5 * reach[k] / std::sqrt(3.0 * kDraws));
  }
}

using Matrix4 = std::array<std::array<double, 4>, 4>;

Matrix4 product(const Matrix4& a, const Matrix4& b) {
  Matrix4 out{};
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 4; ++j)
      for (size_t k = 0; k < 4; ++k) out[i][j] += a[i][k] * b[k][j];
  return out;
}

// TAO's product for rows (r, g, b, 1) that stand left of it: hue and saturation, contrast about its center, then what
// is added to each channel.
TEST(Color, IsTaosProductOfMatrices) {
  const double hue = 0.07, saturation = 0.83, contrast = 0.09, center = 0.4;
  const std::array<double, 3> shift = {0.05, -0.02, 0.11};
  const Color in_hue = Color::of({.saturation = saturation, .hue = hue});  // checked above
  Matrix4 first{}, second{}, third{};
  for (size_t i = 0; i < 4; ++i) first[i][i] = second[i][i] = third[i][i] = 1;
  for (size_t c = 0; c < 3; ++c) {
    for (size_t from = 0; from < 3; ++from) first[from][c] = in_hue.rows[c][from];
    second[c][c] = 1 + contrast;
    second[3][c] = -contrast * center;
    third[3][c] = shift[c];
  }
  const Matrix4 expected = product(product(first, second), third);
  const Color color = Color::of(
      {.contrast = 1 + contrast, .saturation = saturation, .hue = hue, .contrast_center = center, .shift = shift});
  for (size_t from = 0; from < 4; ++from)
    for (size_t to = 0; to < 3; ++to) EXPECT_NEAR(color.rows[to][from], expected[from][to], 1e-12);
}

// Of a normal distribution that is cut at two deviations, the deviation is 0.8796 of that of the whole one.
TEST(Color, AugmentationIsDrawnAsTaoDrawsIt) {
  const ColorAugmentation options{.color_shift_stddev = 0.02,
                                  .hue_rotation_max = 36,
                                  .saturation_shift_max = 0.2,
                                  .contrast_scale_max = 0.1,
                                  .contrast_center = 0.3};
  constexpr int kDraws = 20000;
  struct Moments {
    double limit, deviation, sum = 0, squares = 0, most = 0;
    void add(double x) { sum += x, squares += x * x, most = std::max(most, std::abs(x)); }
  };
  Moments of[] = {{0.1, 0.05 * 0.8796}, {0.2, 0.2 / std::sqrt(3.0)}, {0.1, 0.05 * 0.8796}, {0.04, 0.02 * 0.8796}};
  double red_and_green = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    CounterRng random(7, 1, i), alone(7, 1, i);
    const ColorChange change = choose_color(options, random);
    EXPECT_EQ(choose_color(ColorAugmentation{.contrast_scale_max = 0.1}, alone).contrast, change.contrast);
    EXPECT_EQ(change.contrast_center, 0.3);
    EXPECT_EQ(change.brightness, 1);
    of[0].add(change.hue);
    of[1].add(change.saturation - 1);
    of[2].add(change.contrast - 1);
    of[3].add(change.shift[0]);
    red_and_green += change.shift[0] * change.shift[1];
  }
  for (const Moments& m : of) {
    EXPECT_LE(m.most, m.limit + 1e-12);
    EXPECT_GT(m.most, 0.98 * m.limit);
    EXPECT_NEAR(m.sum / kDraws, 0, 5 * m.deviation / std::sqrt(double{kDraws}));
    EXPECT_NEAR(std::sqrt(m.squares / kDraws), m.deviation, 0.02 * m.deviation);
  }
  // Each channel by itself: 5 deviations of the mean of products.
  EXPECT_NEAR(red_and_green / kDraws, 0, 5 * 0.0176 * 0.0176 / std::sqrt(double{kDraws}));
}

std::vector<float> painted(const TransformOptions& options, const Image& image, const Color& color) {
  const Transform transform(options, image);
  std::vector<float> out(static_cast<size_t>(transform.output_shape().size()), NAN);
  transform.paint(image, transform.choose(image.height, image.width, {}), out.data(), color);
  return out;
}

// Each value against the definition, in double. A float sum of four terms up to 2 is right to about 4 * 2^-24 * 2,
// which the division by the deviation makes larger.
TEST(Color, PixelsAreChangedThenCutThenNormalized) {
  Image image{9, 7, 3, {}};
  CounterRng random(1, 2);
  for (int i = 0; i < 9 * 7 * 3; ++i) image.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  const TransformOptions options{.mean = {0.5, 0.4, 0.3}, .std = {0.2, 0.25, 0.5}};
  for (const ColorChange& change : {ColorChange{}, ColorChange{.brightness = 1.5},
                                    ColorChange{.brightness = 0.8, .contrast = 1.6}, ColorChange{.saturation = 1.8},
                                    ColorChange{.brightness = 1.3, .contrast = 1.5, .saturation = 0.6, .hue = 0.3}}) {
    const Color color = Color::of(change);
    const std::vector<float> out = painted(options, image, color);
    int at_the_limit = 0;
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) {
        const uint8_t* p = image.row(y) + x * 3;
        const Rgb changed = through(color, {p[0] / 255.0, p[1] / 255.0, p[2] / 255.0});
        for (size_t c = 0; c < 3; ++c) {
          const double cut = std::clamp(changed[c], 0.0, 1.0);
          at_the_limit += cut != changed[c];
          const double expected = (cut - options.mean[c]) / options.std[c];
          ASSERT_NEAR(out[(c * 9 + static_cast<size_t>(y)) * 7 + static_cast<size_t>(x)], expected, 1e-6 / 0.2);
        }
      }
    EXPECT_EQ(at_the_limit > 0, change.brightness > 1 || change.contrast > 1 || change.saturation > 1);
  }
}

TEST(Color, WithoutOptionsBytesStayAndEvaluationHasNone) {
  const Image image = test_image(8, 8, 3);
  const TransformOptions plain{.crop_padding = 2, .flip = true, .mean = {0.5}, .std = {0.25}};
  TransformOptions zero = plain, colored = plain;
  zero.color = ColorOptions{};
  colored.color = ColorOptions{.hue = 0.1};
  EXPECT_TRUE(Transform(plain, image).choose_color({1, 2, 3}).is_identity());
  EXPECT_TRUE(Transform(zero, image).choose_color({1, 2, 3}).is_identity());
  EXPECT_FALSE(Transform(colored, image).choose_color({1, 2, 3}).is_identity());
  TransformOptions as_tao = plain;
  as_tao.color_augmentation = ColorAugmentation{.hue_rotation_max = 25};
  EXPECT_FALSE(Transform(as_tao, image).choose_color({1, 2, 3}).is_identity());
  EXPECT_FALSE(evaluation_transform(as_tao).color_augmentation.has_value());
  EXPECT_FALSE(evaluation_transform(colored).color.has_value());
}

TEST(Color, BeyondTheBorderItStaysBlack) {
  const Image image{1, 1, 3, {255, 255, 255}};
  const Transform transform({}, image);
  Geometry geometry = Geometry::whole(1, 1);
  geometry.shift_x = 1;
  std::vector<float> out(3, NAN);
  for (const ColorChange& change : {ColorChange{.contrast = 0.5}, ColorChange{.contrast = 0.5, .hue = 0.2}}) {
    transform.paint(image, geometry, out.data(), Color::of(change));
    EXPECT_EQ(out, std::vector<float>(3, 0.0f));
  }
}

TEST(Color, GrayImagesTakeBrightnessAndContrastAlone) {
  const Image image = test_image(5, 5, 1);
  TransformOptions options;
  options.color = ColorOptions{.saturation = 1, .hue = 0.5};
  EXPECT_TRUE(Transform(options, image).choose_color({1, 2, 3}).is_identity());
  options.color = ColorOptions{.brightness = 0.5, .contrast = 0.5, .saturation = 1, .hue = 0.5};
  const Color color = Transform(options, image).choose_color({1, 2, 3});
  EXPECT_FALSE(color.is_identity());
  EXPECT_FALSE(color.mixes());
  const std::vector<float> out = painted(options, image, color);
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_NEAR(out[i], std::clamp(color.rows[0][0] * image.pixels[i] / 255 + color.rows[0][3], 0.0, 1.0), 1e-6);
}

TEST(Color, IsAFunctionOfItsKeyAndMovesNothing) {
  const Image image = test_image(12, 16, 3);
  TransformOptions plain{
      .height = 8, .width = 8, .mode = ResizeMode::kRandomResizedCrop, .crop_padding = 1, .flip = true};
  TransformOptions colored = plain;
  colored.color = ColorOptions{.brightness = 0.2, .contrast = 0.2, .saturation = 0.2, .hue = 0.1};
  const Transform without(plain, image), with(colored, image);
  const Annotation truth{.objects = {{.box = {2, 3, 11, 9}, .label = 1}}};
  std::set<double> seen;
  for (int64_t index = 0; index < 100; ++index) {
    const AugmentKey key{.seed = 3, .epoch = 5, .index = index};
    const auto before = moved(truth, without.choose(12, 16, key)), after = moved(truth, with.choose(12, 16, key));
    ASSERT_EQ(before.objects.size(), after.objects.size());
    for (size_t i = 0; i < before.objects.size(); ++i) EXPECT_EQ(before.objects[i].box, after.objects[i].box);
    EXPECT_EQ(with.choose_color(key), with.choose_color(key));
    seen.insert(with.choose_color(key).rows[0][0]);
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_NE(with.choose_color({1, 2, 3}), with.choose_color({2, 2, 3}));
  EXPECT_NE(with.choose_color({1, 2, 3}), with.choose_color({1, 3, 3}));
}

}  // namespace
}  // namespace octet::data

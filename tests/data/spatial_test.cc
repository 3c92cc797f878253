#include "data/spatial.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/data_options.h"
#include "image_files.h"
#include "schema/schema.h"

namespace octet::data {
namespace {

using Matrix3 = std::array<std::array<double, 3>, 3>;

Matrix3 product(const Matrix3& a, const Matrix3& b) {
  Matrix3 out{};
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 3; ++k) out[i][j] += a[i][k] * b[k][j];
  return out;
}

// TAO's matrices are for rows (x, y, 1) that stand left of them.
void expect_transposed(const Affine& is, const Matrix3& tao, double tolerance = 1e-9) {
  const Matrix3 transposed = {{{is.xx, is.yx, 0}, {is.xy, is.yy, 0}, {is.x0, is.y0, 1}}};
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) EXPECT_NEAR(transposed[i][j], tao[i][j], tolerance) << i << " " << j;
}

TEST(Affine, InverseUndoesAndProductsApplyFromTheRight) {
  const Affine a{0.7, -1.2, 30, 0.4, 2, -7}, b = Affine::rotation(0.3, 5, 6);
  const Point p = (a * b)(3, 4), q = b(3, 4), expected = a(q.x, q.y);
  EXPECT_NEAR(p.x, expected.x, 1e-12);
  EXPECT_NEAR(p.y, expected.y, 1e-12);
  const Point back = a.inverse()(p.x, p.y);
  EXPECT_NEAR(back.x, q.x, 1e-12);
  EXPECT_NEAR(back.y, q.y, 1e-12);
  const Point middle = b(5, 6);  // stays where it is
  EXPECT_NEAR(middle.x, 5, 1e-12);
  EXPECT_NEAR(middle.y, 6, 1e-12);
}

TEST(Spatial, IsTaosProductOfMatrices) {
  constexpr int kHeight = 90, kWidth = 160;
  const double w = kWidth, h = kHeight;
  for (const bool hflip : {false, true})
    for (const bool vflip : {false, true})
      for (const double angle : {0.0, -0.3, 1.9})
        for (const double zoom : {0.8, 1.0, 1.7}) {
          const SpatialChange change{.hflip = hflip,
                                     .vflip = vflip,
                                     .radians = angle,
                                     .zoom = zoom,
                                     .zoom_x = zoom == 1 ? 0.0 : 11.0,
                                     .zoom_y = zoom == 1 ? 0.0 : -3.5,
                                     .translate_x = -8,
                                     .translate_y = 5};
          Matrix3 m = {{{hflip ? -1.0 : 1.0, 0, 0}, {0, vflip ? -1.0 : 1.0, 0}, {hflip ? w : 0, vflip ? h : 0, 1}}};
          const double c = std::cos(angle), s = std::sin(angle);
          m = product(m, {{{c, s, 0}, {-s, c, 0}, {h * s / 2 - w * c / 2 + w / 2, -h * c / 2 + h / 2 - w * s / 2, 1}}});
          m = product(m, {{{1, 0, 0}, {0, 1, 0}, {-change.zoom_x, -change.zoom_y, 1}}});
          m = product(m, {{{zoom, 0, 0}, {0, zoom, 0}, {0, 0, 1}}});
          m = product(m, {{{1, 0, 0}, {0, 1, 0}, {-8, 5, 1}}});
          expect_transposed(change.matrix(kHeight, kWidth), m);
        }
  EXPECT_EQ(SpatialChange{}.matrix(kHeight, kWidth), Affine());
}

TEST(Spatial, DrawsAreWithinReachAndOptionsDoNotDisturbOneAnother) {
  const SpatialOptions options{.hflip_probability = 0.25,
                               .vflip_probability = 0.5,
                               .rotate_rad_max = 0.4,
                               .rotate_probability = 0.75,
                               .zoom_min = 0.5,
                               .zoom_max = 2,
                               .translate_max_x = 3,
                               .translate_max_y = 2.9};
  constexpr int kDraws = 8000, kHeight = 50, kWidth = 100;
  int hflips = 0, vflips = 0, rotated = 0;
  std::array<int, 7> columns{};
  std::array<int, 5> rows{};
  double steepest = 0, nearest = 9, farthest = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    CounterRng random(3, 1, i), again(3, 1, i), alone(3, 1, i);
    const SpatialChange c = choose_spatial(options, kHeight, kWidth, false, random);
    EXPECT_EQ(choose_spatial(options, kHeight, kWidth, false, again).matrix(kHeight, kWidth),
              c.matrix(kHeight, kWidth));
    EXPECT_EQ(choose_spatial({.translate_max_x = 3}, kHeight, kWidth, false, alone).translate_x, c.translate_x);
    hflips += c.hflip, vflips += c.vflip, rotated += c.radians != 0;
    ++columns.at(static_cast<size_t>(c.translate_x + 3));
    ++rows.at(static_cast<size_t>(c.translate_y + 2));
    steepest = std::max(steepest, std::abs(c.radians));
    nearest = std::min(nearest, c.zoom), farthest = std::max(farthest, c.zoom);
    // Enlarged: the input stays full. Made smaller: all of it stays in the input.
    const Affine zoomed = SpatialChange{.zoom = c.zoom, .zoom_x = c.zoom_x, .zoom_y = c.zoom_y}.matrix(kHeight, kWidth);
    const Point low = zoomed(0, 0), high = zoomed(kWidth, kHeight);
    const double sign = c.zoom > 1 ? 1 : -1;
    EXPECT_LE(sign * low.x, 1e-9);
    EXPECT_LE(sign * low.y, 1e-9);
    EXPECT_GE(sign * high.x, sign * kWidth - 1e-9);
    EXPECT_GE(sign * high.y, sign * kHeight - 1e-9);
  }
  const auto near = [](int count, double share) {
    EXPECT_NEAR(count, kDraws * share, 5 * std::sqrt(kDraws * share * (1 - share)));
  };
  near(hflips, 0.25), near(vflips, 0.5), near(rotated, 0.75);
  for (const int count : columns) near(count, 1.0 / 7);
  for (const int count : rows) near(count, 0.2);
  EXPECT_LE(steepest, 0.4);
  EXPECT_GT(steepest, 0.39);
  EXPECT_GE(nearest, 0.5);
  EXPECT_LE(farthest, 2);
  EXPECT_LT(nearest, 0.51);
  EXPECT_GT(farthest, 1.99);
}

// Quirk 26 of TAO's: vflip_probability is read and not used. rotate_probability neither.
TEST(Spatial, CompatibleWithTaoItNeverTurnsUpsideDownAndAlwaysRotates) {
  const SpatialOptions options{.vflip_probability = 1, .rotate_rad_max = 0.4, .rotate_probability = 0};
  for (uint64_t i = 0; i < 20; ++i) {
    CounterRng ours(1, 2, i), taos(1, 2, i);
    const SpatialChange right = choose_spatial(options, 10, 10, false, ours);
    EXPECT_TRUE(right.vflip);
    EXPECT_EQ(right.radians, 0);
    const SpatialChange compatible = choose_spatial(options, 10, 10, true, taos);
    EXPECT_FALSE(compatible.vflip);
    EXPECT_NE(compatible.radians, 0);
  }
}

TEST(Preprocessing, CropsThenScales) {
  PreprocessingOptions p{.crop_left = 20, .crop_top = 10, .crop_right = 120, .crop_bottom = 60};
  const Matrix3 crop = {{{1, 0, 0}, {0, 1, 0}, {-20, -10, 1}}};
  // To the input: 100 x 50 becomes 200 x 200.
  expect_transposed(preprocessing_matrix(p, 300, 400, 200, 200), product(crop, {{{2, 0, 0}, {0, 4, 0}, {0, 0, 1}}}));
  p.enable_auto_resize = false;
  expect_transposed(preprocessing_matrix(p, 300, 400, 200, 200), crop);
  p.scale_width = 0.5, p.scale_height = 3;
  const Matrix3 scale = {{{0.5, 0, 0}, {0, 3, 0}, {0, 0, 1}}};
  expect_transposed(preprocessing_matrix(p, 300, 400, 200, 200), product(crop, scale));
  // TAO multiplies the other way round.
  expect_transposed(preprocessing_matrix(p, 300, 400, 200, 200, true), product(scale, crop));
  expect_transposed(preprocessing_matrix({}, 300, 400, 150, 100), {{{0.25, 0, 0}, {0, 0.5, 0}, {0, 0, 1}}});
}

std::string complaint_about(DataOptions data) {
  schema::Section section;
  describe(section, data);
  const auto first_of = [](const schema::Section& s) {
    for (const schema::Rule& rule : s.rules())
      if (const std::string text = rule.complaint(); !text.empty()) return rule.key + " " + text;
    return std::string();
  };
  if (std::string text = first_of(section); !text.empty()) return text;
  for (const schema::Field& field : section.fields()) {
    if (const auto* plain = std::get_if<schema::SectionSlot>(&field.slot()))
      if (std::string text = first_of(*plain->section); !text.empty()) return text;
    if (const auto* optional = std::get_if<schema::OptionalSectionSlot>(&field.slot()))
      if (optional->present())
        if (std::string text = first_of(optional->bind()); !text.empty()) return text;
  }
  return "";
}

TEST(Preprocessing, RefusesWhatDoesNotGoTogether) {
  using testing::HasSubstr;
  DataOptions data;
  const auto with = [&data](const PreprocessingOptions& p) {
    data.transform.preprocessing = p;
    return complaint_about(data);
  };
  EXPECT_EQ(with({}), "");
  EXPECT_EQ(with({.crop_left = 2, .crop_right = 4, .crop_bottom = 3}), "");
  EXPECT_THAT(with({.scale_width = 1}), HasSubstr("needs scale_height"));
  EXPECT_THAT(with({.crop_left = 4, .crop_right = 4, .crop_bottom = 3}), HasSubstr("more than crop_left"));
  EXPECT_THAT(with({.crop_top = 3, .crop_right = 4, .crop_bottom = 2}), HasSubstr("more than crop_top"));
  EXPECT_THAT(with({.crop_left = 4}), HasSubstr("crop_bottom are needed"));
  data.random_resized_crop = true;
  EXPECT_THAT(with({.enable_auto_resize = false}), HasSubstr("random_resized_crop"));
  EXPECT_EQ(with({.min_bbox_height = 8}), "");
  data.transform.color = ColorOptions{};
  data.transform.color_augmentation = ColorAugmentation{};
  EXPECT_THAT(with({}), HasSubstr("color"));
}

}  // namespace
}  // namespace octet::data

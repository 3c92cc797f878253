#include "vision/anchors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace octet::vision {
namespace {

using testing::ElementsAre;

void expect_near(const Box& found, const Box& expected, float tolerance) {
  EXPECT_NEAR(found.x0, expected.x0, tolerance);
  EXPECT_NEAR(found.y0, expected.y0, tolerance);
  EXPECT_NEAR(found.x1, expected.x1, tolerance);
  EXPECT_NEAR(found.y1, expected.y1, tolerance);
}

void expect_shape(const AnchorShape& found, float width, float height) {
  EXPECT_NEAR(found.width, width, 1e-4f);
  EXPECT_NEAR(found.height, height, 1e-4f);
}

TEST(Anchors, ComeByLevelRowColumnAndShape) {
  const std::vector<AnchorLevel> levels = {
      {.rows = 2, .columns = 3, .step_y = 8, .step_x = 16, .shapes = {{10, 20}, {6, 2}}},
      {.rows = 1, .columns = 1, .step_y = 16, .step_x = 48, .offset = 0, .shapes = {{4, 4}}}};
  const std::vector<Box> anchors = make_anchors(levels);
  ASSERT_EQ(anchors.size(), 13u);
  EXPECT_EQ(levels[0].anchors(), 12u);
  size_t i = 0;
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 3; ++column) {
      const float x = 16 * static_cast<float>(column) + 8, y = 8 * static_cast<float>(row) + 4;
      EXPECT_EQ(anchors[i++], (Box{x - 5, y - 10, x + 5, y + 10}));
      EXPECT_EQ(anchors[i++], (Box{x - 3, y - 1, x + 3, y + 1}));
    }
  }
  EXPECT_EQ(anchors[i], (Box{-2, -2, 2, 2}));
  EXPECT_TRUE(make_anchors({}).empty());
}

TEST(Anchors, AreCutAtTheImageOrItsLastPixel) {
  const std::vector<Box> whole = {{-3, 5, 30, 41}, {10, -1, 40, 39.5f}};
  std::vector<Box> boxes = whole;
  clip_anchors(boxes, 30, 40);
  EXPECT_THAT(boxes, ElementsAre(Box{0, 5, 30, 40}, Box{10, 0, 30, 39.5f}));
  boxes = whole;
  clip_anchors(boxes, 30, 40, AnchorClip::kLastPixel);
  EXPECT_THAT(boxes, ElementsAre(Box{0, 5, 29, 39}, Box{10, 0, 29, 39.5f}));
}

TEST(Anchors, ShapesKeepTheirArea) {
  const AnchorShape shape = anchor_shape(32, 4);
  expect_shape(shape, 64, 16);
  const std::vector<AnchorShape> shapes = size_ratio_shapes(std::vector{64.0f, 128.0f}, std::vector{1.0f, 0.25f});
  ASSERT_EQ(shapes.size(), 4u);
  expect_shape(shapes[0], 64, 64);
  expect_shape(shapes[1], 32, 128);
  expect_shape(shapes[2], 128, 128);
  expect_shape(shapes[3], 64, 256);
}

TEST(Anchors, AreTorchvisions) {
  // from torchvision.models.detection.anchor_utils import AnchorGenerator  (0.26)
  // g = AnchorGenerator(sizes=((32, 45), (100,)), aspect_ratios=((0.5, 1, 2), (1., 3.)))
  // g(images of 64 x 96 pixels, [features of 4 x 6, of 2 x 3])[0]
  const std::vector<AnchorLevel> levels = {
      {.rows = 4,
       .columns = 6,
       .step_y = 16,
       .step_x = 16,
       .offset = 0,
       .shapes = torchvision_shapes(std::vector{32.0f, 45.0f}, std::vector{0.5f, 1.0f, 2.0f})},
      {.rows = 2,
       .columns = 3,
       .step_y = 32,
       .step_x = 32,
       .offset = 0,
       .shapes = torchvision_shapes(std::vector{100.0f}, std::vector{1.0f, 3.0f})}};
  const std::vector<Box> anchors = make_anchors(levels);
  ASSERT_EQ(anchors.size(), 156u);
  const std::pair<size_t, Box> expected[] = {
      {0, {-23, -11, 23, 11}},   {8, {0, -16, 32, 16}},     {37, {-32, 0, 32, 32}},   {143, {64, 16, 96, 80}},
      {144, {-50, -50, 50, 50}}, {150, {-50, -18, 50, 82}}, {155, {35, -55, 93, 119}}};
  for (const auto& [i, box] : expected) EXPECT_EQ(anchors[i], box) << i;
}

TEST(Anchors, OctavesDivideADoubling) {
  const std::vector<float> sizes = octave_sizes(32, 3);
  ASSERT_EQ(sizes.size(), 3u);
  EXPECT_EQ(sizes[0], 32);
  EXPECT_NEAR(sizes[1], 32 * std::cbrt(2.0), 1e-4);
  EXPECT_NEAR(sizes[2], 32 * std::cbrt(4.0), 1e-4);
}

TEST(Anchors, SsdsDefaultBoxesAreTorchvisions) {
  // from torchvision.models.detection.anchor_utils import DefaultBoxGenerator  (0.26)
  // g = DefaultBoxGenerator([[2], [2, 3]], scales=[0.1, 0.3, 0.6], steps=[16, 32], clip=False)
  // g(images of 64 x 64 pixels, [features of 4 x 4, of 2 x 2])[0]
  const auto level = [](int cells, float step, float size, float next, std::vector<float> ratios) {
    return AnchorLevel{
        .rows = cells,
        .columns = cells,
        .step_y = step,
        .step_x = step,
        .shapes = prior_shapes({.size = 64 * size, .next_size = 64 * next, .ratios = std::move(ratios)})};
  };
  const std::vector<AnchorLevel> levels = {level(4, 16, 0.1f, 0.3f, {1, 2, 1.0f / 2}),
                                           level(2, 32, 0.3f, 0.6f, {1, 2, 1.0f / 2, 3, 1.0f / 3})};
  const std::vector<Box> anchors = make_anchors(levels);
  ASSERT_EQ(anchors.size(), 88u);
  const std::pair<size_t, Box> expected[] = {{0, {4.8f, 4.8f, 11.2f, 11.2f}},
                                             {1, {2.457438f, 2.457438f, 13.54256f, 13.54256f}},
                                             {2, {3.474516f, 5.737258f, 12.52548f, 10.26274f}},
                                             {3, {5.737258f, 3.474516f, 10.26274f, 12.52548f}},
                                             {7, {21.73726f, 3.474516f, 26.26274f, 12.52548f}},
                                             {63, {53.73726f, 51.47452f, 58.26274f, 60.52548f}},
                                             {64, {6.4f, 6.4f, 25.6f, 25.6f}},
                                             {65, {2.42355f, 2.42355f, 29.57645f, 29.57645f}},
                                             {66, {2.42355f, 9.211775f, 29.57645f, 22.78823f}},
                                             {67, {9.211775f, 2.42355f, 22.78823f, 29.57645f}},
                                             {68, {-0.6276875f, 10.45744f, 32.62769f, 21.54256f}},
                                             {69, {10.45744f, -0.6276875f, 21.54256f, 32.62769f}},
                                             {87, {42.45744f, 31.37231f, 53.54256f, 64.62769f}}};
  for (const auto& [i, box] : expected) expect_near(anchors[i], box, 1e-4f);
}

TEST(Anchors, PriorsFollowTheListOfRatios) {
  // The extra square comes right after ratio 1, wherever that stands (TAO).
  const std::vector<AnchorShape> shapes = prior_shapes({.size = 20, .next_size = 45, .ratios = {4, 1}});
  ASSERT_EQ(shapes.size(), 3u);
  expect_shape(shapes[0], 40, 10);
  expect_shape(shapes[1], 20, 20);
  expect_shape(shapes[2], 30, 30);
  EXPECT_EQ(prior_shapes({.size = 20, .ratios = {4, 1}, .extra_square = false}).size(), 2u);
}

TEST(Anchors, TaosRetinaNetHasOctavesOutside) {
  const std::vector<AnchorShape> shapes = prior_shapes({.size = 20, .next_size = 45, .ratios = {1, 4}, .octaves = 2});
  ASSERT_EQ(shapes.size(), 6u);
  const float root = std::sqrt(2.0f);
  expect_shape(shapes[2], 40, 10);
  expect_shape(shapes[3], 20 * root, 20 * root);
  expect_shape(shapes[4], 30 * root, 30 * root);
  expect_shape(shapes[5], 40 * root, 10 * root);
}

TEST(Anchors, Ssd300OfTaoHas8744) {
  // Six maps of an input of 300 x 300 pixels, the last of 2 x 2 cells (the paper's is 1 x 1: 8732).
  const std::vector<float> four = {1, 2, 0.5f}, six = {1, 2, 0.5f, 3, 1.0f / 3};
  const std::pair<int, std::vector<float>> maps[] = {{38, four}, {19, six}, {10, six}, {5, six}, {3, four}, {2, four}};
  std::vector<AnchorLevel> levels;
  for (const auto& [cells, ratios] : maps)
    levels.push_back({.rows = cells,
                      .columns = cells,
                      .step_y = 300 / static_cast<float>(cells),
                      .step_x = 300 / static_cast<float>(cells),
                      .shapes = prior_shapes({.size = 30, .next_size = 60, .ratios = ratios})});
  EXPECT_EQ(make_anchors(levels).size(), 8744u);
}

}  // namespace
}  // namespace octet::vision

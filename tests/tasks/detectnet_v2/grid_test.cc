#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tasks/detectnet_v2/decode.h"
#include "tasks/detectnet_v2/rasterizer.h"

namespace octet::tasks::detectnet_v2 {
namespace {

using vision::Box;
using vision::Object;

constexpr Grid kGrid{.classes = 2, .rows = 12, .columns = 20, .stride = 16};
const RasterizerOptions kRaster{.classes = {ClassRaster{}}};

float coverage_at(const GridTruth& truth, int label, int row, int column) {
  return truth.coverage[static_cast<size_t>(kGrid.at(label, row, column))];
}

// Inside the ellipse around (x, y) with semi-axes a, b, all in cells.
bool inside(double x, double y, double a, double b, double at_x, double at_y) {
  return std::pow((at_x - x) / a, 2) + std::pow((at_y - y) / b, 2) < 1;
}

// By another way: count samples of the whole grid, from the box in pixels.
TEST(Rasterizer, CoversTheEllipseInTheMiddleOfTheBox) {
  const Box box{40, 30, 200, 150};  // 10 x 7.5 cells, center (7.5, 5.625), semi-axes 0.4 * (5, 3.75) = (2, 1.5)
  const GridTruth truth = rasterize(std::vector<Object>{{.box = box, .label = 1}}, kGrid, kRaster);
  for (int row = 0; row < kGrid.rows; ++row) {
    for (int column = 0; column < kGrid.columns; ++column) {
      int samples = 0;
      for (int i = 0; i < 16; ++i)
        samples += inside(7.5, 5.625, 2, 1.5, column + (i % 4 + 0.5) / 4, row + (i / 4 + 0.5) / 4);
      ASSERT_FLOAT_EQ(coverage_at(truth, 1, row, column), static_cast<float>(samples) / 16) << row << ' ' << column;
      ASSERT_EQ(coverage_at(truth, 0, row, column), 0);
      const size_t cell = static_cast<size_t>(kGrid.at(1, row, column));
      ASSERT_FLOAT_EQ(truth.coverage_weight[cell], static_cast<float>(samples) / 16 / (4 * 2 * 1.5f));
    }
  }
  EXPECT_EQ(coverage_at(truth, 1, 5, 7), 1);
  // Borders of the box seen from cell (5, 7), whose point is (112.5, 80.5), in units of 35 pixels.
  const auto border = [&](int i) { return truth.boxes[static_cast<size_t>(kGrid.at(4 + i, 5, 7))]; };
  EXPECT_FLOAT_EQ(border(0), (112.5f - 40) / 35);
  EXPECT_FLOAT_EQ(border(1), (80.5f - 30) / 35);
  EXPECT_FLOAT_EQ(border(2), (200 - 112.5f) / 35);
  EXPECT_FLOAT_EQ(border(3), (150 - 80.5f) / 35);
}

TEST(Rasterizer, SmallObjectsGetTheLeastRadiusWithTheirShape) {
  // 1 x 0.5 cells around (5, 5): semi-axes 0.2 and 0.1 grow to 2 and 1.
  const GridTruth truth = rasterize(std::vector<Object>{{.box = {72, 76, 88, 84}}}, kGrid, kRaster);
  for (int row = 3; row < 7; ++row)
    for (int column = 2; column < 8; ++column) {
      int samples = 0;
      for (int i = 0; i < 16; ++i) samples += inside(5, 5, 2, 1, column + (i % 4 + 0.5) / 4, row + (i / 4 + 0.5) / 4);
      ASSERT_FLOAT_EQ(coverage_at(truth, 0, row, column), static_cast<float>(samples) / 16) << row << ' ' << column;
    }
}

TEST(Rasterizer, TheNearerObjectHasTheCellsAndADeadZoneAroundThem) {
  // Two boxes of the same place, the second a little lower: only its ellipse is left, in whatever order they come.
  const Object back{.box = {40, 30, 200, 150}}, front{.box = {44, 34, 204, 154}};
  const GridTruth both = rasterize(std::vector{front, back}, kGrid, kRaster);
  const GridTruth alone = rasterize(std::vector{front}, kGrid, kRaster);
  EXPECT_EQ(both.coverage, alone.coverage);
  EXPECT_EQ(both.boxes, alone.boxes);
  // Without a dead zone the rim of the first shows.
  RasterizerOptions bare = kRaster;
  bare.deadzone_radius = 0;
  EXPECT_NE(rasterize(std::vector{front, back}, kGrid, bare).coverage,
            rasterize(std::vector{front}, kGrid, bare).coverage);
}

TEST(Rasterizer, ObjectsBeyondTheBorderDrawWhatLiesInside) {
  const GridTruth truth =
      rasterize(std::vector<Object>{{.box = {-80, -80, 80, 80}}, {.box = {1000, 1000, 1100, 1100}}}, kGrid, kRaster);
  EXPECT_EQ(coverage_at(truth, 0, 0, 0), 1);
  EXPECT_EQ(coverage_at(truth, 0, 11, 19), 0);
}

TEST(Decode, ReturnsTheBoxesThatWereDrawn) {
  std::mt19937 random(1);
  const auto between = [&](int low, int high) {
    return static_cast<float>(low + static_cast<int>(random() % (high - low)));
  };
  for (const Clustering algorithm : {Clustering::kNms, Clustering::kDbscan, Clustering::kHybrid}) {
    const PostprocessingOptions options{
        .clustering = ClusteringOptions{.algorithm = algorithm, .coverage_threshold = 0.3, .dbscan_min_samples = 0.5}};
    for (int round = 0; round < 50; ++round) {
      std::vector<Object> objects;
      for (int i = 0; i < 2; ++i) {  // one on each half, of either class
        const float x = between(0, 60) + static_cast<float>(160 * i), y = between(0, 60);
        objects.push_back(
            {.box = {x, y, x + between(40, 100), y + between(40, 130)}, .label = static_cast<int>(random() % 2)});
      }
      const GridTruth truth = rasterize(objects, kGrid, kRaster);
      const std::vector<Object> found = cluster(propose(truth.coverage, truth.boxes, kGrid, options), options);
      ASSERT_EQ(found.size(), objects.size());
      for (const Object& object : objects) {
        const auto same = [&](const Object& f) { return f.label == object.label && iou(f.box, object.box) > 0.999f; };
        EXPECT_TRUE(std::any_of(found.begin(), found.end(), same));
      }
    }
  }
}

TEST(Decode, BoxesStayInTheImageAndAreNeverInsideOut) {
  std::vector<float> coverage(static_cast<size_t>(kGrid.coverage_size()), 0),
      boxes(static_cast<size_t>(kGrid.box_size()), 0);
  coverage[static_cast<size_t>(kGrid.at(1, 0, 19))] = 0.5f;
  const float distances[] = {1, 5, 9, -20};
  for (int i = 0; i < 4; ++i) boxes[static_cast<size_t>(kGrid.at(4 + i, 0, 19))] = distances[i];
  const std::vector<Object> found =
      propose(coverage, boxes, kGrid, {.clustering = ClusteringOptions{.coverage_threshold = 0.1}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].label, 1);
  EXPECT_FLOAT_EQ(found[0].box.x0, 19 * 16 + 0.5f - 35);
  EXPECT_EQ(found[0].box.x1, 320);
  EXPECT_EQ(found[0].box.y0, 0);
  EXPECT_EQ(found[0].box.y1, 0);
}

}  // namespace
}  // namespace octet::tasks::detectnet_v2

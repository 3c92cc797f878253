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
const RasterizerOptions kRaster;

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

// The steps of the reference, cell by cell and sample by sample, in float64. `border`: the least distance of a sample
// to an ellipse, of the ellipse; where it is near 0, float32 may see it on the other side.
struct Straightforward {
  std::vector<double> coverage, weight, boxes, border;
};

Straightforward straightforward(std::vector<Object> objects, const RasterizerOptions& options) {
  const size_t all = static_cast<size_t>(kGrid.coverage_size());
  Straightforward out{std::vector<double>(all), std::vector<double>(all), std::vector<double>(4 * all),
                      std::vector<double>(all, 1)};
  std::vector<double> most(all);
  std::stable_sort(objects.begin(), objects.end(),
                   [](const Object& a, const Object& b) { return a.box.y1 < b.box.y1; });
  for (const Object& object : objects) {
    const ClassRaster& raster = options.classes.of(object.label);
    double center[2], radius[2], dead[2], half[2];
    const double low[2] = {object.box.x0 / 16, object.box.y0 / 16}, high[2] = {object.box.x1 / 16, object.box.y1 / 16};
    const double at[2] = {raster.cov_center_x, raster.cov_center_y};
    const double share[2] = {raster.cov_radius_x, raster.cov_radius_y};
    for (int axis = 0; axis < 2; ++axis) {
      center[axis] = low[axis] + at[axis] * (high[axis] - low[axis]);
      half[axis] = at[axis] < 0.5 ? center[axis] - low[axis] : high[axis] - center[axis];
      radius[axis] = std::max(share[axis] * half[axis], 0.1);
    }
    for (const auto& [small, other] : {std::pair(0, 1), std::pair(1, 0)})
      if (radius[small] < raster.bbox_min_radius) {
        radius[other] *= raster.bbox_min_radius / radius[small];
        radius[small] = raster.bbox_min_radius;
      }
    for (int axis = 0; axis < 2; ++axis)
      dead[axis] =
          std::max(radius[axis], (1 - options.deadzone_radius) * radius[axis] + options.deadzone_radius * half[axis]);
    for (int row = 0; row < kGrid.rows; ++row)
      for (int column = 0; column < kGrid.columns; ++column) {
        const size_t cell = static_cast<size_t>(kGrid.at(object.label, row, column));
        const auto share_inside = [&](const double(&axes)[2]) {
          double inside = 0;
          for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) {
              const double x = (column + (j + 0.5) / 4 - center[0]) / axes[0];
              const double y = (row + (i + 0.5) / 4 - center[1]) / axes[1];
              inside += x * x + y * y < 1;
              out.border[cell] = std::min(out.border[cell], std::fabs(x * x + y * y - 1));
            }
          return inside / 16;
        };
        const double a = share_inside(dead), c = share_inside(radius);
        const double point[2] = {column * 16 + 0.5, row * 16 + 0.5};
        const double border[4] = {point[0] - object.box.x0, point[1] - object.box.y0, object.box.x1 - point[0],
                                  object.box.y1 - point[1]};
        const auto write = [&](double coverage) {
          out.coverage[cell] = most[cell] = coverage;
          out.weight[cell] = coverage / std::max(4 * radius[0] * radius[1], 1.0);
          for (int k = 0; k < 4; ++k)
            out.boxes[static_cast<size_t>(kGrid.at(4 * object.label + k, row, column))] =
                coverage > 0 ? border[k] / 35 : 0;
        };
        if (a >= most[cell] && a > 0) write(0);
        if (c >= most[cell] && c > 0) write(c);
      }
  }
  return out;
}

// Boxes of all kinds: tiny, without area, larger than the image, partly or wholly outside, on top of each other.
TEST(Rasterizer, IsTheReferenceForEachClass) {
  std::mt19937 random(7);
  const auto between = [&](int low, int high) {
    return static_cast<float>(low * 4 + static_cast<int>(random() % static_cast<unsigned>(4 * (high - low)))) / 4;
  };
  int compared = 0, covered = 0, cells = 0;
  for (int round = 0; round < 200; ++round) {
    const auto any = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
    RasterizerOptions options{.classes = {}, .deadzone_radius = any({0, 0.4, 0.67, 1})};
    const std::vector<std::string> names = {"person", "car"};
    for (const std::string& name : names)
      options.classes.named.push_back({name,
                                       {.cov_center_x = any({0, 0.3, 0.5, 1}),
                                        .cov_center_y = any({0, 0.5, 0.8}),
                                        .cov_radius_x = any({0.2, 0.4, 1, 1.7}),
                                        .cov_radius_y = any({0.4, 1}),
                                        .bbox_min_radius = any({0.01, 0.5, 1, 3})}});
    options.classes.resolve(names, "");
    std::vector<Object> objects;
    for (int i = 0; i < 6; ++i) {
      const float x = between(-100, 340), y = between(-80, 220);
      const float width = random() % 8 ? between(1, 200) : 0, height = random() % 8 ? between(1, 150) : 0;
      objects.push_back({.box = {x, y, x + width, y + height}, .label = static_cast<int>(random() % 2)});
    }
    const GridTruth truth = rasterize(objects, kGrid, options);
    const Straightforward want = straightforward(objects, options);
    for (int label = 0; label < 2; ++label)
      for (int row = 0; row < kGrid.rows; ++row)
        for (int column = 0; column < kGrid.columns; ++column, ++cells) {
          const size_t cell = static_cast<size_t>(kGrid.at(label, row, column));
          if (want.border[cell] < 1e-4) continue;
          ++compared, covered += want.coverage[cell] > 0;
          ASSERT_EQ(truth.coverage[cell], want.coverage[cell]) << round << ": " << row << ' ' << column;
          ASSERT_NEAR(truth.coverage_weight[cell], want.weight[cell], 1e-5);
          for (int k = 0; k < 4; ++k) {
            const size_t at = static_cast<size_t>(kGrid.at(4 * label + k, row, column));
            ASSERT_NEAR(truth.boxes[at], want.boxes[at], 1e-4) << round << ": " << row << ' ' << column;
          }
        }
  }
  EXPECT_GT(compared, cells * 9 / 10);
  EXPECT_GT(covered, cells / 50);
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

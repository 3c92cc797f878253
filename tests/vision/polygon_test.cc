// Golden pixels are those of pycocotools 2.0.11: mask.decode(mask.merge(mask.frPyObjects(polygons, height, width)));
// tests/peers/coco_masks.py compares thousands of others where pycocotools is installed.
#include "vision/polygon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "vision/rle_text.h"

namespace octet::vision {
namespace {

using testing::HasSubstr;

// A row of '.' and '#' for each row of pixels.
std::string picture(const Mask& mask) {
  std::string out;
  const std::vector<uint8_t> values = pixels(mask);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && i % static_cast<size_t>(mask.width()) == 0) out += '\n';
    out += values[i] ? '#' : '.';
  }
  return out;
}

Mask painted(const std::vector<Polygon>& polygons, int height, int width) {
  return mask_of_polygons(polygons, height, width);
}

std::string error_of_polygons(const std::vector<Polygon>& polygons) {
  try {
    painted(polygons, 100, 1000);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Polygon, AnyQuadrangle) {
  EXPECT_EQ(picture(painted({{2, 1, 8.4, 1.5, 7, 6.6, 3, 5.2}}, 8, 10)),
            "..........\n"
            "..#####...\n"
            "..######..\n"
            "...#####..\n"
            "...#####..\n"
            "....###...\n"
            "..........\n"
            "..........");
}

TEST(Polygon, PartsAreUnitedAndCutAtTheImage) {
  EXPECT_EQ(picture(painted({{1.5, 1.5, 6.5, 1.5, 6.5, 6.5, 1.5, 6.5}, {5, 5, 30, 5, 30, -4, 5, -4}}, 10, 12)),
            ".....#######\n"
            ".....#######\n"
            "..##########\n"
            "..##########\n"
            "..##########\n"
            "..#####.....\n"
            "..#####.....\n"
            "............\n"
            "............\n"
            "............");
}

TEST(Polygon, CrossesItself) {
  EXPECT_EQ(picture(painted({{0, 0, 10, 8, 10, 0, 0, 8}}, 9, 11)),
            "#........#.\n"
            "##......##.\n"
            "###....###.\n"
            "####..####.\n"
            "####..####.\n"
            "###....###.\n"
            "##......##.\n"
            "#........#.\n"
            "...........");
}

TEST(Polygon, WithACornerTwiceIsThatWithIt) {
  const Mask mask = painted({{3, 3, 3, 3, 9, 3, 9, 9, 3, 9}}, 12, 12);
  EXPECT_EQ(mask, painted({{3, 3, 9, 3, 9, 9, 3, 9}}, 12, 12));
  EXPECT_EQ(bounds(mask), (Box{3, 3, 9, 9}));
  EXPECT_EQ(area(mask), 36);
}

TEST(Polygon, LargeOne) {
  const Mask mask = painted({{300.5, 200, 500, 240, 480.25, 410, 310, 400}}, 480, 640);
  EXPECT_EQ(area(mask), 34317);
  EXPECT_EQ(bounds(mask), (Box{301, 200, 500, 410}));
  const std::string text = rle_text(mask);
  EXPECT_EQ(text.substr(0, 40), "XY]4c0]>e0\\Oe0ZOe0[Oe0[Oe0[Of0[Od0[Oe0[O");
  EXPECT_EQ(text.substr(text.size() - 16), "8G9H8G9G:G8Gi\\Q2");
}

TEST(Polygon, FarBeyondTheImageCostsNothing) {
  const double far = kMaxPolygonCoordinate;
  EXPECT_EQ(painted({{-far, -far, far, -far, far, far, -far, far}}, 3, 4), Mask(3, 4, std::vector<uint32_t>{0, 12}));
  EXPECT_EQ(area(painted({{far, 0, far, far, far - 1, far}}, 3, 4)), 0);
}

TEST(Polygon, RefusesWhatIsNone) {
  EXPECT_THAT(error_of_polygons({}), HasSubstr("no polygon"));
  EXPECT_THAT(error_of_polygons({{1, 2, 3, 4, 5}}), HasSubstr("has 5 numbers, expected pairs"));
  EXPECT_THAT(error_of_polygons({{1, 2, 3, 4}}), HasSubstr("has 2 corners, expected at least 3"));
  EXPECT_THAT(error_of_polygons({{1, 2, 3, 4, 5, 1.1e6}}), HasSubstr("has the coordinate 1.1e+06"));
  EXPECT_THAT(error_of_polygons({{1, 2, 3, 4, 5, std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr("coordinate nan"));
  EXPECT_THAT(error_of_polygons({{1, 2, 3, 4, 5, 6}, {}}), HasSubstr("has 0 corners"));
  Polygon comb;  // each tooth crosses 1000 columns twice
  for (int i = 0; i < 2200; ++i) comb.insert(comb.end(), {0, 1, 1000, 2});
  EXPECT_THAT(error_of_polygons({comb}),
              HasSubstr("crosses the columns of an image of 100 x 1000 pixels more than 4194304"));
}

}  // namespace
}  // namespace octet::vision

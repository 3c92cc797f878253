#include "vision/outline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "vision/polygon.h"

namespace octet::vision {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Mask mask_of(const std::vector<std::string>& rows) {
  std::vector<uint8_t> values;
  for (const std::string& row : rows)
    for (const char c : row) values.push_back(c == '#');
  return mask_of_pixels(values, static_cast<int>(rows.size()), static_cast<int>(rows[0].size()));
}

// Whether a pixel beside the object is surrounded by it: what lies beside is flooded from outside, over corners, too.
bool has_hole(const Mask& mask) {
  const int width = mask.width() + 2, height = mask.height() + 2;
  const std::vector<uint8_t> values = pixels(mask);
  std::vector<uint8_t> reached(static_cast<size_t>(width * height));
  for (int y = 1; y + 1 < height; ++y)
    for (int x = 1; x + 1 < width; ++x)
      reached[static_cast<size_t>(y * width + x)] = values[static_cast<size_t>((y - 1) * mask.width() + x - 1)];
  std::vector<int> open = {0};
  reached[0] = 2;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const int x = at % width + dx, y = at / width + dy;
        if (x < 0 || y < 0 || x >= width || y >= height || reached[static_cast<size_t>(y * width + x)]) continue;
        reached[static_cast<size_t>(y * width + x)] = 2;
        open.push_back(y * width + x);
      }
  }
  return std::count(reached.begin(), reached.end(), 0) > 0;
}

TEST(Outlines, RunAlongTheBordersOfPixels) {
  EXPECT_THAT(*outlines(mask_of({"....", ".##.", "...."})), ElementsAre(ElementsAre(1, 1, 3, 1, 3, 2, 1, 2)));
  EXPECT_THAT(*outlines(mask_of({"#.", "##"})), ElementsAre(ElementsAre(0, 0, 1, 0, 1, 1, 2, 1, 2, 2, 0, 2)));
  EXPECT_THAT(*outlines(mask_of({"..", ".."})), IsEmpty());
}

TEST(Outlines, PartsThatTouchAtACornerAreApart) {
  EXPECT_THAT(*outlines(mask_of({"#.", ".#"})),
              ElementsAre(ElementsAre(0, 0, 1, 0, 1, 1, 0, 1), ElementsAre(1, 1, 2, 1, 2, 2, 1, 2)));
  EXPECT_THAT(*outlines(mask_of({".#", "#."})),
              ElementsAre(ElementsAre(1, 0, 2, 0, 2, 1, 1, 1), ElementsAre(0, 1, 1, 1, 1, 2, 0, 2)));
  EXPECT_EQ(outlines(mask_of({".#.", "#.#", ".#."}))->size(), 4u) << "four parts around a pixel are no hole";
}

TEST(Outlines, HolesHaveNone) {
  EXPECT_FALSE(outlines(mask_of({"###", "#.#", "###"})));
  EXPECT_FALSE(outlines(mask_of({"####", "#.##", "##.#", "####"})));
  EXPECT_TRUE(outlines(mask_of({"###", "#.#", "#.#"})));
}

// The polygons' mask is that of COCO's API (polygon_test.cc, tests/peers/coco_masks.py).
TEST(Outlines, AsPolygonsAreTheMask) {
  std::mt19937 random(5);
  int with = 0, without = 0;
  for (int i = 0; i < 2000; ++i) {
    const int height = 1 + static_cast<int>(random() % 12), width = 1 + static_cast<int>(random() % 12);
    std::vector<uint8_t> values(static_cast<size_t>(height * width));
    for (uint8_t& v : values) v = random() % 100 < 10 + 80 * (static_cast<unsigned>(i) % 9) / 8;
    const Mask mask = mask_of_pixels(values, height, width);
    const auto found = outlines(mask);
    ASSERT_EQ(!found, has_hole(mask)) << i;
    if (!found || found->empty()) {
      ++without;
      continue;
    }
    ++with;
    std::vector<Polygon> polygons;
    for (const Outline& outline : *found) polygons.emplace_back(outline.begin(), outline.end());
    ASSERT_EQ(mask_of_polygons(polygons, height, width), mask) << i;
  }
  EXPECT_GT(with, 500);
  EXPECT_GT(without, 200);
}

}  // namespace
}  // namespace octet::vision

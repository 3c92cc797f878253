#include "vision/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "base/error.h"

namespace octet::vision {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Pixels = std::vector<uint8_t>;

constexpr int kHeight = 5, kWidth = 7;
// A ring and two corners.
const Pixels kPicture = {0, 0, 0, 0, 0, 0, 1,  //
                         0, 0, 1, 1, 1, 0, 0,  //
                         0, 0, 1, 0, 1, 0, 0,  //
                         0, 0, 1, 1, 1, 0, 0,  //
                         1, 0, 0, 0, 0, 0, 0};

Mask mask_of(const std::vector<uint32_t>& counts, int height, int width) {
  return {height, width, counts};
}

Pixels random_pixels(std::minstd_rand& random, int height, int width) {
  Pixels out(static_cast<size_t>(height * width));
  const unsigned rarity = 1 + static_cast<unsigned>(random() % 6);
  for (uint8_t& pixel : out) pixel = random() % rarity == 0;
  return out;
}

std::string error_of_counts(const std::vector<uint32_t>& counts, int height, int width) {
  try {
    mask_of(counts, height, width);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Mask, RunsGoDownTheColumns) {
  const Mask mask = mask_of_pixels(kPicture, kHeight, kWidth);
  EXPECT_THAT(mask.counts(), ElementsAre(4, 1, 6, 3, 2, 1, 1, 1, 2, 3, 6, 1, 4));
  EXPECT_EQ(pixels(mask), kPicture);
  EXPECT_EQ(area(mask), 10);
  EXPECT_EQ(bounds(mask), (Box{0, 0, 7, 5}));
}

TEST(Mask, AFirstPixelOfTheObjectFollowsAnEmptyRun) {
  const Mask mask = mask_of_pixels(Pixels{1, 0, 1, 0}, 2, 2);
  EXPECT_THAT(mask.counts(), ElementsAre(0, 2, 2));
  EXPECT_EQ(bounds(mask), (Box{0, 0, 1, 2}));
}

TEST(Mask, EmptyRunsAreJoinedAway) {
  EXPECT_EQ(mask_of({1, 2, 0, 3, 0, 0, 0}, 2, 3), mask_of({1, 5}, 2, 3));
  EXPECT_EQ(mask_of({0, 0, 2, 4}, 2, 3), mask_of({2, 4}, 2, 3));
  EXPECT_EQ(mask_of({0, 6}, 2, 3), mask_of({0, 3, 0, 3}, 2, 3));
}

TEST(Mask, NothingAndAll) {
  const Mask nothing = mask_of({6}, 2, 3), all = mask_of({0, 6}, 2, 3);
  EXPECT_EQ(area(nothing), 0);
  EXPECT_EQ(bounds(nothing), Box{});
  EXPECT_EQ(area(all), 6);
  EXPECT_EQ(bounds(all), (Box{0, 0, 3, 2}));
  EXPECT_EQ(iou(nothing, nothing), 0);
  EXPECT_EQ(iou(nothing, all), 0);
  EXPECT_EQ(iou(all, all), 1);
  EXPECT_EQ(united(nothing, all), all);
}

TEST(Mask, RefusesWhatIsNoMaskOfItsSides) {
  EXPECT_THAT(error_of_counts({1, 2}, 2, 3), HasSubstr("have 3 pixels, expected 6"));
  EXPECT_THAT(error_of_counts({1, 7}, 2, 3), HasSubstr("have more than 6 pixels, expected 6"));
  EXPECT_THAT(error_of_counts({4294967295u, 4294967295u, 2}, 2, 3), HasSubstr("more than 6"));
  EXPECT_THAT(error_of_counts({}, 2, 3), HasSubstr("have 0 pixels"));
  EXPECT_THAT(error_of_counts({}, 0, 3), HasSubstr("0 x 3 pixels (height x width)"));
  EXPECT_THAT(error_of_counts({}, 2, -3), HasSubstr("2 x -3"));
  EXPECT_THAT(error_of_counts({}, 1 << 20, 1 << 20), HasSubstr("at most 134217728 pixels"));
}

TEST(Mask, IouIsThatOfCoco) {
  // Squares in 20 x 20 pixels: (2, 2) to (12, 9), and (6, 4) to (18, 16). pycocotools 2.0.11:
  // mask.iou([a], [b], [0]), mask.iou([a], [b], [1]), mask.iou([b], [a], [1])
  const auto square = [](int x0, int y0, int x1, int y1) {
    Pixels out(400, 0);
    for (int y = y0; y < y1; ++y)
      std::fill(&out[static_cast<size_t>(20 * y + x0)], &out[static_cast<size_t>(20 * y + x1)], uint8_t{1});
    return mask_of_pixels(out, 20, 20);
  };
  const Mask a = square(2, 2, 12, 9), b = square(6, 4, 18, 16);
  EXPECT_NEAR(iou(a, b), 0.16304348, 1e-8);
  EXPECT_NEAR(iou(a, b, true), 0.42857143, 1e-8);
  EXPECT_NEAR(iou(b, a, true), 0.20833333, 1e-8);
  EXPECT_THROW(iou(a, mask_of({6}, 2, 3)), InternalError);
}

TEST(Mask, IsWhatItsPixelsAre) {
  std::minstd_rand random(3);
  for (int round = 0; round < 300; ++round) {
    const int height = 1 + static_cast<int>(random() % 9), width = 1 + static_cast<int>(random() % 9);
    const Pixels a = random_pixels(random, height, width), b = random_pixels(random, height, width);
    const Mask mask_a = mask_of_pixels(a, height, width), mask_b = mask_of_pixels(b, height, width);
    ASSERT_EQ(pixels(mask_a), a);
    ASSERT_EQ(area(mask_a), std::accumulate(a.begin(), a.end(), int64_t{0}));
    ASSERT_EQ(mask_of({mask_a.counts().begin(), mask_a.counts().end()}, height, width), mask_a);
    int common = 0, either = 0;
    Pixels all(a.size());
    Box tight{100, 100, 0, 0};
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const auto i = static_cast<size_t>(y * width + x);
        common += a[i] && b[i], either += a[i] || b[i];
        all[i] = a[i] || b[i];
        const auto fx = static_cast<float>(x), fy = static_cast<float>(y);
        if (a[i])
          tight = {std::min(tight.x0, fx), std::min(tight.y0, fy), std::max(tight.x1, fx + 1),
                   std::max(tight.y1, fy + 1)};
      }
    }
    ASSERT_EQ(bounds(mask_a), tight.x1 > 0 ? tight : Box{});
    ASSERT_EQ(iou(mask_a, mask_b), either ? static_cast<double>(common) / either : 0);
    ASSERT_EQ(pixels(united(mask_a, mask_b)), all);
    ASSERT_EQ(united(mask_a, mask_b), mask_of_pixels(all, height, width));
    // Any rows and columns, some of them beside it.
    std::vector<int> rows(1 + random() % 12), columns(1 + random() % 12);
    for (int& y : rows) y = static_cast<int>(random() % static_cast<unsigned>(height + 1)) - 1;
    for (int& x : columns) x = static_cast<int>(random() % static_cast<unsigned>(width + 1)) - 1;
    Pixels picked;
    for (const int y : rows)
      for (const int x : columns) picked.push_back(y >= 0 && x >= 0 && a[static_cast<size_t>(y * width + x)]);
    ASSERT_EQ(pixels(gathered(mask_a, rows, columns)), picked);
  }
}

TEST(Mask, GathersOnlyWhatIsThere) {
  const Mask mask = mask_of({6}, 2, 3);
  EXPECT_THROW(gathered(mask, std::vector{0, 2}, std::vector{0}), InternalError);
  EXPECT_THROW(gathered(mask, std::vector{0}, std::vector{3}), InternalError);
}

}  // namespace
}  // namespace octet::vision

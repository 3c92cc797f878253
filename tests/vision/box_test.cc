#include "vision/box.h"

#include <gtest/gtest.h>

namespace octet::vision {
namespace {

TEST(Box, IouOfHalvesThirdsAndStrangers) {
  const Box whole{0, 0, 10, 4}, left{0, 0, 5, 4}, middle{2.5f, 0, 7.5f, 4}, far{20, 0, 30, 4};
  EXPECT_FLOAT_EQ(iou(whole, left), 0.5f);
  EXPECT_FLOAT_EQ(iou(left, middle), 1.0f / 3);  // 10 of 20 + 20 - 10
  EXPECT_EQ(iou(left, far), 0);
  EXPECT_FLOAT_EQ(iou(whole, whole), 1);
}

TEST(Box, InclusiveBordersCountTheLastPixel) {
  // One column of 10 pixels in common, 10 x 10 and 10 x 10 pixels in all.
  const Box a{0, 0, 9, 9}, b{9, 0, 18, 9};
  EXPECT_FLOAT_EQ(iou(a, b, Borders::kInclusive), 10.0f / 190);
  EXPECT_EQ(iou(a, b), 0);
  EXPECT_FLOAT_EQ(area({3, 3, 3, 3}, Borders::kInclusive), 1);
}

TEST(Box, EmptyBoxesOverlapNothing) {
  const Box none{3, 3, 3, 3}, inverted{5, 5, 1, 1};
  EXPECT_EQ(iou(none, none), 0);
  EXPECT_EQ(area(inverted), 0);
  EXPECT_EQ(iou(inverted, {0, 0, 6, 6}), 0);
}

TEST(Box, IsCutAtTheImage) {
  EXPECT_EQ(clipped({-3, 2, 50, 60}, 40, 30), (Box{0, 2, 40, 30}));
  EXPECT_EQ(area(clipped({50, 50, 60, 60}, 40, 30)), 0);
}

}  // namespace
}  // namespace octet::vision

#include "metrics/coco.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "vision/mask.h"

namespace octet::metrics {
namespace {

using vision::Object;

Object square(float x, float side, float score = 1, int label = 0) {
  return {.box = {x, 0, x + side, side}, .label = label, .score = score};
}
double figure(const CocoAccumulator& a, const std::string& name) {
  for (const CocoFigure& each : coco_figures(a.result()))
    if (each.name == name) return each.value;
  ADD_FAILURE() << name;
  return -1;
}

TEST(Coco, ThresholdsAreThoseOfNumPy) {
  const std::vector<double> t = coco_iou_thresholds();
  ASSERT_EQ(t.size(), 10u);
  EXPECT_EQ(t.front(), 0.5);
  EXPECT_EQ(t[5], 0.75);
  EXPECT_EQ(t.back(), 0.95);
}

TEST(Coco, APerfectDetectorHasOneAndAnEmptyOneNothing) {
  CocoAccumulator perfect({}), empty({});
  const std::vector<Object> truth{square(0, 20), square(200, 50), square(400, 120)};
  perfect.add(truth, truth);
  empty.add({}, truth);
  for (const CocoFigure& each : coco_figures(perfect.result()))
    EXPECT_DOUBLE_EQ(each.value, each.name == "ar_1" ? 1.0 / 3 : 1.0) << each.name;
  for (const CocoFigure& each : coco_figures(empty.result())) EXPECT_EQ(each.value, 0) << each.name;
  EXPECT_TRUE(std::isnan(figure(CocoAccumulator({}), "ap")));
}

// An IoU of exactly 3/4 counts up to the threshold 0.75, the sixth of ten.
TEST(Coco, AnOverlapOfTheThresholdIsEnough) {
  CocoAccumulator a({});
  a.add(std::vector<Object>{{.box = {0, 0, 40, 30}}}, std::vector{square(0, 40)});
  EXPECT_DOUBLE_EQ(figure(a, "ap"), 0.6);
  EXPECT_DOUBLE_EQ(figure(a, "ap50"), 1);
  EXPECT_DOUBLE_EQ(figure(a, "ap75"), 1);
}

// Both detections overlap the first object most; other than VOC's, COCO's second one takes the next object that is
// free.
TEST(Coco, ADetectionTakesTheBestObjectThatIsFree) {
  CocoAccumulator a({});
  const std::vector<Object> truth{square(0, 40), square(10, 40)}, found{square(0, 40, 0.9f), square(1, 40, 0.8f)};
  a.add(found, truth);
  EXPECT_DOUBLE_EQ(figure(a, "ap50"), 1);
}

TEST(Coco, AreasIncludeBothBorders) {
  const auto small_and_medium = [](float side) {
    CocoAccumulator a({});
    a.add({}, std::vector{square(0, side)});
    return std::pair(!std::isnan(figure(a, "ap_small")), !std::isnan(figure(a, "ap_medium")));
  };
  EXPECT_EQ(small_and_medium(31), std::pair(true, false));
  EXPECT_EQ(small_and_medium(32), std::pair(true, true));
  EXPECT_EQ(small_and_medium(33), std::pair(false, true));
}

// A wrong detection outside the range is not held against it; one inside is.
TEST(Coco, WrongDetectionsOfAnotherSizeDoNotCount) {
  CocoAccumulator a({});
  a.add(std::vector{square(600, 20, 0.9f), square(0, 50, 0.5f)}, std::vector{square(0, 50)});
  EXPECT_DOUBLE_EQ(figure(a, "ap_medium"), 1);
  EXPECT_DOUBLE_EQ(figure(a, "ap"), 0.5);
}

// Four detections in a crowd are neither right nor wrong: all of each lies in it, little as that is of the crowd.
TEST(Coco, ACrowdTakesAnyNumberOfDetections) {
  Object crowd = square(100, 200);
  crowd.crowd = crowd.difficult = true;
  std::vector<Object> found;
  for (int i = 0; i < 4; ++i) found.push_back(square(100 + 50.0f * static_cast<float>(i), 50, 0.9f));
  found.push_back(square(0, 50, 0.1f));
  CocoAccumulator a({}), difficult({});
  a.add(found, std::vector{crowd, square(0, 50)});
  EXPECT_DOUBLE_EQ(figure(a, "ap"), 1);
  crowd.crowd = false;  // merely difficult: IoU 1/16, so the four are wrong
  difficult.add(found, std::vector{crowd, square(0, 50)});
  EXPECT_NEAR(figure(difficult, "ap"), 0.2, 1e-12);
}

TEST(Coco, OnlyTheSurestTakePart) {
  std::vector<Object> found, truth;
  for (int i = 0; i < 12; ++i) truth.push_back(square(100.0f * static_cast<float>(i), 50));
  found = truth;
  CocoAccumulator a({});
  a.add(found, truth);
  EXPECT_DOUBLE_EQ(figure(a, "ar_1"), 1.0 / 12);
  EXPECT_DOUBLE_EQ(figure(a, "ar_10"), 10.0 / 12);
  EXPECT_DOUBLE_EQ(figure(a, "ar_100"), 1);
  EXPECT_DOUBLE_EQ(figure(a, "ap"), 1);
}

TEST(Coco, ClassesAndThresholdsCanBeAskedFor) {
  CocoAccumulator a({.classes = 3});
  a.add(std::vector{square(0, 50, 0.9f, 0)}, std::vector{square(0, 50, 1, 0), square(0, 50, 1, 1)});
  const CocoResult result = a.result();
  EXPECT_DOUBLE_EQ(result.average_precision({}), 0.5);
  EXPECT_DOUBLE_EQ(result.average_precision({.label = 0}), 1);
  EXPECT_DOUBLE_EQ(result.average_precision({.iou = 9, .label = 1}), 0);
  EXPECT_TRUE(std::isnan(result.average_precision({.label = 2})));
}

// Right, wrong, right of two objects: precision 1 to a recall of 1/2, then 2/3.
TEST(Coco, CurvesAreMonotonicPrecisionsAtEvenRecalls) {
  CocoAccumulator a({});
  a.add(std::vector{square(0, 50, 0.9f), square(600, 50, 0.8f), square(300, 50, 0.7f)},
        std::vector{square(0, 50), square(300, 50)});
  const std::vector<double> curve = a.precision_curve(0, 0, 0, 2);
  ASSERT_EQ(curve.size(), 101u);
  for (size_t i = 0; i < curve.size(); ++i) EXPECT_DOUBLE_EQ(curve[i], i <= 50 ? 1 : 2.0 / 3) << i;
  EXPECT_TRUE(a.precision_curve(0, 0, 1, 2).empty());  // no small object
}

TEST(Coco, MasksAreComparedByTheirPixels) {
  const auto mask = [](int first, int columns) {  // of 10 x 10 pixels
    const std::vector<uint32_t> runs{static_cast<uint32_t>(10 * first), static_cast<uint32_t>(10 * columns),
                                     static_cast<uint32_t>(10 * (10 - first - columns))};
    return std::make_shared<vision::Mask>(10, 10, runs);
  };
  Object truth{.box = {0, 0, 10, 10}, .mask = mask(0, 8)}, found{.box = {0, 0, 10, 10}, .mask = mask(0, 4)};
  CocoAccumulator boxes({}), masks({.region = Region::kMask});
  boxes.add(std::vector{found}, std::vector{truth});
  masks.add(std::vector{found}, std::vector{truth});
  EXPECT_DOUBLE_EQ(figure(boxes, "ap"), 1);
  EXPECT_DOUBLE_EQ(figure(masks, "ap"), 0.1);  // IoU 1/2: the first threshold alone
}

TEST(Coco, PartsOfTheDataMerge) {
  std::mt19937 random(3);
  const auto objects = [&](int count) {
    std::vector<Object> out;
    for (int i = 0; i < count; ++i)
      out.push_back(square(static_cast<float>(random() % 60), static_cast<float>(20 + random() % 30),
                           static_cast<float>(random() % 8) / 8, static_cast<int>(random() % 2)));
    return out;
  };
  for (int round = 0; round < 10; ++round) {
    CocoAccumulator whole({.classes = 2}), first({.classes = 2}), second({.classes = 2});
    for (int image = 0; image < 10; ++image) {
      const std::vector<Object> found = objects(6), truth = objects(4);
      whole.add(found, truth);
      (image < 4 ? first : second).add(found, truth);
    }
    first.merge(second);
    EXPECT_EQ(first.images(), 10);
    const auto merged = coco_figures(first.result()), expected = coco_figures(whole.result());
    for (size_t i = 0; i < merged.size(); ++i) {
      EXPECT_EQ(std::isnan(merged[i].value), std::isnan(expected[i].value)) << merged[i].name;
      if (!std::isnan(expected[i].value)) {
        EXPECT_EQ(merged[i].value, expected[i].value) << merged[i].name;
      }
    }
  }
}

}  // namespace
}  // namespace octet::metrics

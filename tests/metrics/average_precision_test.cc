#include "metrics/average_precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace octet::metrics {
namespace {

using vision::Object;

Object at(float x, float score = 1, int label = 0) {
  return {.box = {x, 0, x + 10, 10}, .label = label, .score = score};
}
double mean_ap(const AveragePrecisionAccumulator& a) {
  return a.result().mean_average_precision;
}

TEST(AveragePrecision, APerfectDetectorHasOneAndAnEmptyOneNothing) {
  for (const Interpolation how : {Interpolation::kEnvelope, Interpolation::kElevenPoint}) {
    AveragePrecisionAccumulator perfect({.interpolation = how}), empty({.interpolation = how});
    perfect.add(std::vector{at(0, 0.3f), at(50, 0.9f)}, std::vector{at(0), at(50)});
    empty.add({}, std::vector{at(0)});
    EXPECT_DOUBLE_EQ(mean_ap(perfect), 1);
    EXPECT_EQ(mean_ap(empty), 0);
  }
}

// By hand. By score: right, wrong, right, wrong of three objects: recall 1/3 1/3 2/3 2/3, precision 1 1/2 2/3 1/2.
TEST(AveragePrecision, IsTheAreaUnderTheEnvelope) {
  const std::vector<Object> found{at(0, 0.9f), at(500, 0.8f), at(50, 0.7f), at(600, 0.6f)},
      truth{at(0), at(50), at(100)};
  AveragePrecisionAccumulator area({}), points({.interpolation = Interpolation::kElevenPoint});
  area.add(found, truth);
  points.add(found, truth);
  EXPECT_DOUBLE_EQ(mean_ap(area), 1.0 / 3 + 1.0 / 3 * 2 / 3);
  // Recall 0 to 0.3: precision 1 (four points); 0.4 to 0.6: 2/3 (three points); then none.
  EXPECT_NEAR(mean_ap(points), (4 + 3 * 2.0 / 3) / 11, 1e-12);
  const ClassPrecision c = area.result().classes.at(0);
  EXPECT_EQ(c.objects, 3);
  EXPECT_EQ(c.detections, 4);
  EXPECT_EQ(c.right, 2);
}

TEST(AveragePrecision, ASecondDetectionOfAnObjectIsWrong) {
  AveragePrecisionAccumulator a({});
  a.add(std::vector{at(0, 0.9f), at(1, 0.8f), at(50, 0.7f)}, std::vector{at(0), at(50)});
  EXPECT_DOUBLE_EQ(mean_ap(a), 0.5 + 0.5 * 2 / 3);
}

// The better object is taken by a surer detection; VOC does not try the next object.
TEST(AveragePrecision, ADetectionGoesToTheObjectThatItOverlapsMost) {
  AveragePrecisionAccumulator a({.iou_threshold = 0.3f});
  a.add(std::vector{at(0, 0.9f), at(1, 0.8f)}, std::vector{at(0), at(4)});
  EXPECT_DOUBLE_EQ(mean_ap(a), 0.5);
}

TEST(AveragePrecision, DifficultObjectsCountNeitherWay) {
  Object hard = at(50);
  hard.difficult = true;
  AveragePrecisionAccumulator a({});
  a.add(std::vector{at(50, 0.95f), at(51, 0.9f), at(0, 0.5f)}, std::vector{at(0), hard});
  EXPECT_DOUBLE_EQ(mean_ap(a), 1);
  EXPECT_EQ(a.result().classes[0].detections, 1);
  EXPECT_EQ(a.result().classes[0].objects, 1);
}

TEST(AveragePrecision, AnOverlapOfTheThresholdIsEnough) {
  const Object whole{.box = {0, 0, 10, 10}}, half{.box = {0, 0, 10, 5}}, less{.box = {0, 0, 10, 4.9f}};
  AveragePrecisionAccumulator enough({}), short_of({});
  enough.add(std::vector{half}, std::vector{whole});
  short_of.add(std::vector{less}, std::vector{whole});
  EXPECT_EQ(mean_ap(enough), 1);
  EXPECT_EQ(mean_ap(short_of), 0);
}

TEST(AveragePrecision, ClassesWithoutObjectsAreNotInTheMean) {
  AveragePrecisionAccumulator a({.classes = 3});
  a.add(std::vector{at(0, 0.9f, 0), at(80, 0.9f, 2)}, std::vector{at(0, 1, 0), at(50, 1, 1)});
  const DetectionMetrics m = a.result();
  EXPECT_EQ(m.classes[0].average_precision, 1);
  EXPECT_EQ(m.classes[1].average_precision, 0);
  EXPECT_TRUE(std::isnan(m.classes[2].average_precision));
  EXPECT_EQ(m.classes[2].detections, 1);
  EXPECT_DOUBLE_EQ(m.mean_average_precision, 0.5);
  EXPECT_TRUE(std::isnan(mean_ap(AveragePrecisionAccumulator({}))));
}

TEST(AveragePrecision, PartsOfTheDataMerge) {
  std::mt19937 random(3);
  const auto objects = [&](int count) {
    std::vector<Object> out;
    for (int i = 0; i < count; ++i)
      out.push_back(
          at(static_cast<float>(random() % 60), static_cast<float>(random() % 8) / 8, static_cast<int>(random() % 2)));
    return out;
  };
  for (int round = 0; round < 20; ++round) {
    AveragePrecisionAccumulator whole({.classes = 2}), first({.classes = 2}), second({.classes = 2});
    for (int image = 0; image < 10; ++image) {
      const std::vector<Object> found = objects(6), truth = objects(4);
      whole.add(found, truth);
      (image < 4 ? first : second).add(found, truth);
    }
    first.merge(second);
    EXPECT_EQ(mean_ap(first), mean_ap(whole));
    EXPECT_EQ(first.images(), 10);
  }
}

}  // namespace
}  // namespace octet::metrics

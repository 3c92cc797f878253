#include "metrics/average_precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <tuple>

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
  AveragePrecisionAccumulator a({.matching = {{.iou_threshold = 0.3f}}});
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

TEST(AveragePrecision, EachClassHasItsOwnOverlap) {
  const Object truth{.box = {0, 0, 10, 10}, .label = 0}, found{.box = {0, 0, 10, 6}, .label = 0};
  Object other = truth, of_other = found;
  other.label = of_other.label = 1;
  AveragePrecisionAccumulator a({.classes = 2, .matching = {{.iou_threshold = 0.7f}, {.iou_threshold = 0.5f}}});
  a.add(std::vector{found, of_other}, std::vector{truth, other});
  EXPECT_EQ(a.result().classes[0].average_precision, 0);
  EXPECT_EQ(a.result().classes[1].average_precision, 1);
}

Object of_size(float x, float width, float height, float score = 1) {
  return {.box = {x, 0, x + width, height}, .score = score};
}

// A little too small an object, found by a detection that is large enough; and the reverse.
TEST(AveragePrecision, BoxesOutsideTheLimitsCountNeitherWay) {
  AveragePrecisionOptions options{.matching = {{.limits = {.minimum_height = 20}}}};
  const std::vector<Object> truth{of_size(0, 40, 19), of_size(100, 40, 20), of_size(200, 40, 40)},
      found{of_size(0, 40, 20.5f, 0.9f), of_size(100, 40, 19.5f, 0.8f), of_size(300, 10, 10, 0.7f),
            of_size(200, 40, 40, 0.6f)};
  AveragePrecisionAccumulator right(options);
  right.add(found, truth);
  EXPECT_EQ(right.result().classes[0].objects, 2);  // 20 is enough
  EXPECT_EQ(right.result().classes[0].detections, 2);
  EXPECT_DOUBLE_EQ(mean_ap(right), 1);
  options.discard_outside = true;  // as TAO: the first detection is wrong, and the second object is not found
  AveragePrecisionAccumulator tao(options);
  tao.add(found, truth);
  EXPECT_EQ(tao.result().classes[0].detections, 2);
  EXPECT_DOUBLE_EQ(mean_ap(tao), 0.5 * 0.5);
}

TEST(AveragePrecision, LimitsHoldForBothSides) {
  const BoxLimits limits{.minimum_width = 10, .maximum_width = 20, .minimum_height = 5, .maximum_height = 8};
  for (const auto& [width, height, inside] : {std::tuple(10.0f, 5.0f, true),
                                              {20.0f, 8.0f, true},
                                              {9.9f, 6.0f, false},
                                              {20.1f, 6.0f, false},
                                              {15.0f, 4.9f, false},
                                              {15.0f, 8.1f, false}})
    EXPECT_EQ(limits.contain({3, 4, 3 + width, 4 + height}), inside) << width << " x " << height;
}

// Halves go to the even pixel: 0.5 to 0, -0.5 to 0, 2.5 to 2.
TEST(AveragePrecision, WholePixelsRoundHalvesToEven) {
  const Object truth{.box = {0, 0, 2, 1}}, found{.box = {0.5f, -0.5f, 2.5f, 0.5f}};
  AveragePrecisionAccumulator exact({}), rounded({.whole_pixels = true}),
      inclusive({.borders = vision::Borders::kInclusive, .whole_pixels = true});
  for (AveragePrecisionAccumulator* a : {&exact, &rounded, &inclusive}) a->add(std::vector{found}, std::vector{truth});
  EXPECT_EQ(mean_ap(exact), 0);
  EXPECT_EQ(mean_ap(rounded), 0);    // {0, 0, 2, 0}, which has no area
  EXPECT_EQ(mean_ap(inclusive), 1);  // 3 x 1 pixels of 3 x 2: a half
}

TEST(AveragePrecision, TaosIntegralOfAPerfectDetectorMissesOneObject) {
  for (const int objects : {1, 2, 7}) {
    std::vector<Object> truth;
    for (int i = 0; i < objects; ++i) truth.push_back(at(50.0f * static_cast<float>(i)));
    AveragePrecisionAccumulator a({.interpolation = Interpolation::kTaoEnvelope});
    a.add(truth, truth);
    EXPECT_NEAR(mean_ap(a), 1 - 1.0 / objects, 1e-12);
  }
}

// By another way: for each recall that occurs but the last, the best precision among the points of this recall or a
// higher one, the last left out, times the way to the next recall.
TEST(AveragePrecision, TaosIntegralEqualsItsDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const int objects = 1 + static_cast<int>(random() % 8), detections = static_cast<int>(random() % 14);
    std::vector<Object> truth, found;
    for (int i = 0; i < objects; ++i) truth.push_back(at(50.0f * static_cast<float>(i)));
    std::vector<double> recall, precision;
    int right = 0;
    std::vector<bool> taken(static_cast<size_t>(objects), false);
    for (int i = 0; i < detections; ++i) {
      const auto place = random() % static_cast<unsigned>(2 * objects);  // half of them beside the objects
      found.push_back(at(50.0f * static_cast<float>(place), 1 - static_cast<float>(i) / 16));
      if (place < static_cast<unsigned>(objects) && !taken[place]) taken[place] = true, ++right;
      recall.push_back(static_cast<double>(right) / objects);
      precision.push_back(static_cast<double>(right) / (i + 1));
    }
    const std::set<double> recalls(recall.begin(), recall.end());
    double expected = 0;
    for (auto r = recalls.begin(); r != recalls.end() && std::next(r) != recalls.end(); ++r) {
      double best = 0;
      for (size_t i = 0; i < recall.size(); ++i)
        if (recall[i] >= *r && recall[i] != *recalls.rbegin()) best = std::max(best, precision[i]);
      expected += (*std::next(r) - *r) * best;
    }
    AveragePrecisionAccumulator a({.interpolation = Interpolation::kTaoEnvelope});
    a.add(found, truth);
    ASSERT_NEAR(mean_ap(a), expected, 1e-12) << round;
  }
}

TEST(AveragePrecision, TaoCountsAbsentClassesAsNothing) {
  AveragePrecisionAccumulator a({.classes = 2, .mean_of_all = true});
  a.add(std::vector{at(0)}, std::vector{at(0)});
  EXPECT_DOUBLE_EQ(mean_ap(a), 0.5);
}

TEST(AveragePrecision, TheCurveHasAPointForEachScore) {
  AveragePrecisionAccumulator a({.classes = 2});
  a.add(std::vector{at(0, 0.9f), at(500, 0.5f), at(50, 0.5f), at(600, 0.25f)}, std::vector{at(0), at(50)});
  const std::vector<OperatingPoint> curve = a.curve(0);
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_EQ(curve[0].recall, 0.5);
  EXPECT_EQ(curve[0].precision, 1);
  EXPECT_EQ(curve[1].score, 0.5f);
  EXPECT_EQ(curve[1].recall, 1);
  EXPECT_DOUBLE_EQ(curve[1].precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(curve[1].f1(), 0.8);
  EXPECT_DOUBLE_EQ(curve[2].precision, 0.5);
  EXPECT_TRUE(a.curve(1).empty());
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

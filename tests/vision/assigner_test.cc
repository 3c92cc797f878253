#include "vision/assigner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace octet::vision {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<Object> truths_of(const std::vector<Box>& boxes) {
  std::vector<Object> truths;
  for (const Box& box : boxes) truths.push_back({.box = box});
  return truths;
}

const std::vector<Box> kAnchors = {{0, 0, 10, 10},   {2, 0, 12, 10},       {4, 0, 14, 10},
                                   {30, 30, 40, 40}, {100, 100, 110, 110}, {31, 30, 41, 40}};
const std::vector<Box> kBoxes = {{0, 0, 10, 10}, {3, 0, 13, 10}, {28, 30, 38, 40}};

TEST(AssignByIou, IsTorchvisionsMatcher) {
  // from torchvision.models.detection._utils import Matcher  (0.26); from torchvision.ops import box_iou
  // Matcher(high, low, allow_low_quality_matches)(box_iou(boxes, anchors)), where -1 is background and -2 ignored:
  const std::vector<Object> truths = truths_of(kBoxes);
  EXPECT_THAT(assign_by_iou(kAnchors, truths, {.positive = 0.7f, .negative = 0.3f}, true),
              ElementsAre(0, 1, 1, 2, -1, -2));
  EXPECT_THAT(assign_by_iou(kAnchors, truths, {.positive = 0.7f, .negative = 0.3f}), ElementsAre(0, 1, 1, -2, -1, -2));
  EXPECT_THAT(assign_by_iou(kAnchors, truths, {.positive = 0.5f, .negative = 0.4f}, true),
              ElementsAre(0, 1, 1, 2, -1, 2));
}

TEST(AssignByIou, AnOverlapOfJustAThresholdBelongsAbove) {
  const std::vector<Box> anchors = {{0, 0, 10, 10}};
  const std::vector<Object> half = truths_of({{0, 0, 10, 5}}), quarter = truths_of({{0, 0, 5, 5}});
  EXPECT_THAT(assign_by_iou(anchors, half, {.positive = 0.5f, .negative = 0.25f}), ElementsAre(0));
  EXPECT_THAT(assign_by_iou(anchors, quarter, {.positive = 0.5f, .negative = 0.25f}), ElementsAre(kIgnore));
  EXPECT_THAT(assign_by_iou(anchors, quarter, {.positive = 0.5f, .negative = 0.26f}), ElementsAre(kBackground));
}

TEST(AssignByIou, EqualTruthsGoToTheFirst) {
  EXPECT_THAT(assign_by_iou(kAnchors, truths_of({kAnchors[3], kAnchors[3]}), {}, true),
              ElementsAre(kBackground, kBackground, kBackground, 0, kBackground, 0));
}

TEST(AssignByIou, AllAnchorsThatAreEquallyTheBestLearnLowQuality) {
  // Both overlap the truth by 2 of 18 columns; the third less.
  const std::vector<Box> anchors = {{0, 0, 10, 10}, {16, 0, 26, 10}, {17, 0, 27, 10}};
  const std::vector<Object> truths = truths_of({{8, 0, 18, 10}});
  EXPECT_THAT(assign_by_iou(anchors, truths, {.positive = 0.7f, .negative = 0.3f}, true),
              ElementsAre(0, 0, kBackground));
}

TEST(AssignByIou, WithoutOverlapNothingIsLearned) {
  EXPECT_THAT(assign_by_iou(kAnchors, {}, {.positive = 0.7f, .negative = 0.3f}, true), Each(kBackground));
  EXPECT_THAT(assign_by_iou(kAnchors, truths_of({{500, 500, 510, 510}}), {.positive = 0.7f, .negative = 0.3f}, true),
              Each(kBackground));
  EXPECT_TRUE(assign_by_iou({}, truths_of(kBoxes), {}, true).empty());
}

TEST(AssignByIou, DifficultTruthsAreNobodysAndNoBackground) {
  std::vector<Object> truths = truths_of({kAnchors[3], {0, 0, 14, 10}});
  truths[0].difficult = true;
  const IouThresholds thresholds{.positive = 0.7f, .negative = 0.3f};
  // The last anchor shows nine tenths of the difficult one.
  EXPECT_THAT(assign_by_iou(kAnchors, truths, thresholds, true), ElementsAre(1, 1, 1, kIgnore, kBackground, kIgnore));
  // A crowd is larger than its anchors, so that their IoU is small: what counts is the share of the anchor.
  truths[0].box = {0, 0, 1000, 1000};
  EXPECT_THAT(assign_by_iou(kAnchors, truths, thresholds), ElementsAre(1, 1, 1, kIgnore, kIgnore, kIgnore));
}

TEST(AssignByIou, ThresholdsInOrder) {
  EXPECT_THROW(assign_by_iou(kAnchors, {}, {.positive = 0.3f, .negative = 0.5f}), InternalError);
}

TEST(AssignBipartite, EveryTruthHasAnAnchorOfItsOwn) {
  // The best of all pairs is (anchor 1, truth 1), so truth 0, which would have it too, gets the next.
  const std::vector<Box> anchors = {{0, 0, 10, 10}, {2, 0, 12, 10}, {40, 0, 50, 10}};
  const std::vector<Object> truths = truths_of({{3, 0, 13, 10}, {2, 0, 12, 10}});
  EXPECT_THAT(assign_bipartite(anchors, truths, {.positive = 0.9f, .negative = 0.9f}), ElementsAre(0, 1, kBackground));
}

TEST(AssignBipartite, TheRestGoesByThresholds) {
  const std::vector<Box> anchors = {{0, 0, 10, 10}, {1, 0, 11, 10}, {4, 0, 14, 10}, {8, 0, 18, 10}};
  // IoU 1, 9/11, 6/14, 2/18.
  EXPECT_THAT(assign_bipartite(anchors, truths_of({{0, 0, 10, 10}}), {.positive = 0.5f, .negative = 0.4f}),
              ElementsAre(0, 0, kIgnore, kBackground));
}

TEST(AssignBipartite, TruthsWithoutAFreeAnchorGetNone) {
  EXPECT_THAT(assign_bipartite(std::vector<Box>{{0, 0, 10, 10}},
                               truths_of({{500, 500, 510, 510}, {0, 0, 10, 10}, {0, 0, 10, 9}}), {}),
              ElementsAre(1));
}

TEST(AssignBipartite, DifficultTruthsTakeNoAnchor) {
  std::vector<Object> truths = truths_of({{0, 0, 10, 10}, {3, 0, 13, 10}});
  truths[0].difficult = true;
  EXPECT_THAT(assign_bipartite(kAnchors, truths, {}), ElementsAre(1, 1, 1, kBackground, kBackground, kBackground));
  truths[1].box = {90, 90, 120, 120};
  EXPECT_THAT(assign_bipartite(kAnchors, truths, {}),
              ElementsAre(kIgnore, kIgnore, kIgnore, kBackground, 1, kBackground));
}

// The matching as its definition says it, with the whole matrix.
std::vector<int> bipartite_by_definition(const std::vector<Box>& anchors, const std::vector<Object>& truths,
                                         const IouThresholds& thresholds) {
  std::vector<std::vector<float>> left(truths.size(), std::vector<float>(anchors.size()));
  for (size_t t = 0; t < truths.size(); ++t)
    for (size_t a = 0; a < anchors.size(); ++a) left[t][a] = iou(anchors[a], truths[t].box);
  const auto all = left;
  std::vector<int> assigned(anchors.size(), kBackground);
  std::vector<bool> own(anchors.size(), false);
  for (size_t n = 0; n < truths.size(); ++n) {
    size_t t = 0, a = 0;
    for (size_t i = 0; i < truths.size(); ++i)
      for (size_t j = 0; j < anchors.size(); ++j)
        if (left[i][j] > left[t][a]) t = i, a = j;
    if (left[t][a] == 0) break;
    assigned[a] = static_cast<int>(t), own[a] = true;
    std::fill(left[t].begin(), left[t].end(), 0.0f);
    for (auto& row : left) row[a] = 0;
  }
  for (size_t a = 0; a < anchors.size(); ++a) {
    if (own[a]) continue;
    for (size_t t = 0; t < truths.size(); ++t) {
      const float best = assigned[a] >= 0 ? all[static_cast<size_t>(assigned[a])][a] : 0;
      if (all[t][a] > best && all[t][a] >= thresholds.positive)
        assigned[a] = static_cast<int>(t);
      else if (assigned[a] < 0 && all[t][a] >= thresholds.negative)
        assigned[a] = kIgnore;
    }
  }
  return assigned;
}

TEST(AssignBipartite, IsWhatTheWholeMatrixGives) {
  std::minstd_rand random(7);
  const auto box = [&] {  // whole numbers: ties are frequent
    const auto x = static_cast<float>(random() % 30), y = static_cast<float>(random() % 30);
    return Box{x, y, x + 4 + static_cast<float>(random() % 12), y + 4 + static_cast<float>(random() % 12)};
  };
  int own = 0, ignored = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Box> anchors(40), boxes(1 + random() % 8);
    std::generate(anchors.begin(), anchors.end(), box);
    std::generate(boxes.begin(), boxes.end(), box);
    const std::vector<Object> truths = truths_of(boxes);
    const IouThresholds thresholds{.positive = 0.5f, .negative = 0.3f};
    const std::vector<int> assigned = assign_bipartite(anchors, truths, thresholds);
    ASSERT_EQ(assigned, bipartite_by_definition(anchors, truths, thresholds)) << round;
    for (const int a : assigned) own += a >= 0, ignored += a == kIgnore;
  }
  EXPECT_GT(own, 500);
  EXPECT_GT(ignored, 200);
}

// Two levels: 1 x 2 cells of 32 pixels with priors 40 x 40 and 20 x 60, 2 x 4 cells of 16 pixels with 10 x 10.
const std::vector<AnchorLevel> kLevels = {
    {.rows = 1, .columns = 2, .step_y = 32, .step_x = 32, .shapes = {{40, 40}, {20, 60}}},
    {.rows = 2, .columns = 4, .step_y = 16, .step_x = 16, .shapes = {{10, 10}}}};

TEST(AssignByShape, TheBestShapeInTheCellOfTheCenter) {
  // A tall one around (40, 10): cell (0, 1) of the first level, its second prior. A small one around (36, 20): cell (1,
  // 2) of the second level.
  const std::vector<int> assigned = assign_by_shape(kLevels, truths_of({{30, -20, 50, 40}, {31, 15, 41, 25}}));
  ASSERT_EQ(assigned.size(), 12u);
  for (size_t a = 0; a < assigned.size(); ++a) EXPECT_EQ(assigned[a], a == 3 ? 0 : a == 4 + 6 ? 1 : kBackground) << a;
}

TEST(AssignByShape, CentersBeyondTheImageCountToTheLastCell) {
  const std::vector<int> assigned = assign_by_shape(kLevels, truths_of({{59, 27, 69, 37}, {-6, -6, 4, 4}}));
  EXPECT_EQ(assigned[4 + 7], 0);
  EXPECT_EQ(assigned[4], 1);
}

TEST(AssignByShape, EqualShapesGoToTheFirst) {
  const std::vector<AnchorLevel> twins = {
      {.rows = 1, .columns = 1, .step_y = 9, .step_x = 9, .shapes = {{8, 8}, {8, 8}}}};
  EXPECT_THAT(assign_by_shape(twins, truths_of({{0, 0, 8, 8}})), ElementsAre(0, kBackground));
}

TEST(AssignByShape, ALaterBestReplacesAnEarlierOne) {
  EXPECT_THAT(assign_by_shape(kLevels, truths_of({{0, 0, 40, 40}, {2, 2, 40, 40}}))[0], 1);
}

TEST(AssignByShape, OthersThatAreLikeItLearnTheTruthToo) {
  // 30 x 50 pixels around (20, 16): 1200 of 1900 with 40 x 40, 1000 of 1700 with 20 x 60, 100 of 1500 with 10 x 10.
  const std::vector<Box> boxes = {{5, -9, 35, 41}};
  EXPECT_THAT(assign_by_shape(kLevels, truths_of(boxes), 0.5f),
              ElementsAre(0, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  EXPECT_THAT(assign_by_shape(kLevels, truths_of(boxes), 0.6f)[1], kBackground);
}

TEST(AssignByShape, WhatIsBetterStaysAndTheBestIsLocked) {
  const Box square{0, -4, 40, 36}, tall{10, -14, 30, 46}, between{5, -9, 35, 41};
  // The square has the first prior as its best; what is between the two would have both, and has the first as its best.
  EXPECT_THAT(assign_by_shape(kLevels, truths_of({tall, between}), 0.5f)[1], 0);  // locked
  EXPECT_THAT(assign_by_shape(kLevels, truths_of({tall, between}), 0.5f)[0], 1);
  EXPECT_THAT(assign_by_shape(kLevels, truths_of({between, tall}), 0.5f)[1], 1);    // the best comes later
  EXPECT_THAT(assign_by_shape(kLevels, truths_of({between, square}), 0.5f)[0], 1);  // a later best
  // 30 x 48: 960 of 1680 with 20 x 60, less than `between`; the first prior is the best of both.
  const Box lower{5, -8, 35, 40};
  EXPECT_THAT(assign_by_shape(kLevels, truths_of({between, lower}), 0.5f)[1], 0);
  EXPECT_THAT(assign_by_shape(kLevels, truths_of({lower, between}), 0.5f)[1], 1);
}

TEST(AssignByShape, DifficultTruthsLeaveTheirAnchorsOut) {
  std::vector<Object> truths = truths_of({{0, -4, 40, 36}, {31, 15, 41, 25}});
  truths[1].difficult = true;
  EXPECT_THAT(assign_by_shape(kLevels, truths)[4 + 6], kIgnore);
  truths[0].box = truths[1].box;  // what can be learned goes first
  EXPECT_THAT(assign_by_shape(kLevels, truths)[4 + 6], 0);
}

}  // namespace
}  // namespace octet::vision

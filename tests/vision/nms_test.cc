#include "vision/nms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace octet::vision {
namespace {

using testing::ElementsAre;

Object at(float x, float score, int label = 0) {
  return {.box = {x, 0, x + 10, 10}, .label = label, .score = score};
}

TEST(Nms, KeepsTheBestOfEachHeap) {
  // Neighbors two pixels apart overlap by 8 / 12, three apart by 7 / 13.
  const std::vector<Object> objects{at(0, 0.5f), at(2, 0.9f), at(4, 0.6f), at(30, 0.1f)};
  EXPECT_THAT(nms(objects), ElementsAre(1, 3));
  EXPECT_THAT(nms(objects, {.iou_threshold = 0.7f}), ElementsAre(1, 2, 0, 3));
}

TEST(Nms, WhatIsSuppressedSuppressesNothing) {
  // 0 is dropped for 1; 2 overlaps 0 but not 1.
  const std::vector<Object> objects{at(3, 0.8f), at(0, 0.9f), at(6, 0.7f)};
  EXPECT_THAT(nms(objects), ElementsAre(1, 2));
}

TEST(Nms, AnOverlapOfJustTheThresholdStays) {
  const std::vector<Object> objects{{.box = {0, 0, 10, 10}}, {.box = {0, 0, 10, 5}}};
  EXPECT_THAT(nms(objects), ElementsAre(0, 1));
  EXPECT_THAT(nms(objects, {.iou_threshold = 0.49f}), ElementsAre(0));
}

TEST(Nms, EqualScoresKeepTheirOrder) {
  EXPECT_THAT(nms(std::vector{at(0, 0.5f), at(1, 0.5f)}), ElementsAre(0));
}

TEST(Nms, ClassesDoNotMeetUnlessAsked) {
  const std::vector<Object> objects{at(0, 0.5f, 1), at(1, 0.9f, 2)};
  EXPECT_THAT(nms(objects), ElementsAre(1, 0));
  EXPECT_THAT(nms(objects, {.across_classes = true}), ElementsAre(1));
}

TEST(Nms, Limits) {
  const std::vector<Object> objects{at(0, 0.5f), at(1, 0.9f), at(40, 0.8f), at(80, 0.7f), at(0, 0.6f, 1)};
  EXPECT_THAT(nms(objects, {.candidates = 2}), ElementsAre(1, 2, 4));
  EXPECT_THAT(nms(objects, {.most = 2}), ElementsAre(1, 2));
  EXPECT_THAT(nms(objects, {.score_threshold = 0.75f}), ElementsAre(1, 2));
}

TEST(Nms, NanIsNoDetection) {
  EXPECT_THAT(nms(std::vector{at(0, std::numeric_limits<float>::quiet_NaN()), at(1, 0.1f)}), ElementsAre(1));
  EXPECT_TRUE(nms({}).empty());
}

}  // namespace
}  // namespace octet::vision

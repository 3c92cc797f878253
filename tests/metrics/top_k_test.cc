#include "metrics/top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace octet::metrics {
namespace {

using testing::ElementsAre;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(TopK, OrdersByScoreThenByClass) {
  const std::vector<float> scores{0.5f, 2, 2, -1, 2};
  EXPECT_EQ(top_1(scores), 1);
  EXPECT_THAT(top_k(scores, 4), ElementsAre(1, 2, 4, 0));
  EXPECT_THAT(top_k(scores, 9), ElementsAre(1, 2, 4, 0, 3));
}

TEST(TopK, RanksNanLast) {
  const std::vector<float> scores{kNan, -std::numeric_limits<float>::infinity(), kNan};
  EXPECT_THAT(top_k(scores, 3), ElementsAre(1, 0, 2));
  EXPECT_EQ(top_1(std::vector<float>{kNan, kNan}), 0);
}

TEST(TopK, RankIsThePlaceInTheSortedOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(1 + random() % 20);
    for (float& s : scores) s = random() % 9 == 0 ? kNan : static_cast<float>(random() % 5);
    const std::vector<int> order = top_k(scores, static_cast<int>(scores.size()));
    for (size_t place = 0; place < order.size(); ++place)
      ASSERT_EQ(rank_of(scores, order[place]), static_cast<int64_t>(place));
    ASSERT_EQ(top_1(scores), order[0]);
  }
}

TEST(TopKAccumulator, CountsHitsConfusionAndClasses) {
  TopKAccumulator accuracy(2);
  EXPECT_EQ(accuracy.top_1(), 0);
  accuracy.add(std::vector<float>{3, 2, 1,   // taken for 0, is 0
                                  3, 2, 1},  // taken for 0, is 1: second
               std::vector<int64_t>{0, 1});
  accuracy.add(std::vector<float>{3, 2, 1}, std::vector<int64_t>{2});  // taken for 0, is 2: third
  accuracy.add({}, {});
  EXPECT_EQ(accuracy.images(), 3);
  EXPECT_EQ(accuracy.classes(), 3);
  EXPECT_DOUBLE_EQ(accuracy.top_1(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(accuracy.top_k(), 2.0 / 3);
  EXPECT_THAT(accuracy.confusion_matrix(), ElementsAre(1, 0, 0, 1, 0, 0, 1, 0, 0));
  EXPECT_EQ(accuracy.confusion(2, 0), 1);
  EXPECT_THAT(accuracy.per_class_accuracy(), ElementsAre(1, 0, 0));
}

TEST(TopKAccumulator, MergingPartsEqualsTheWhole) {
  std::mt19937 random(3);
  constexpr size_t kImages = 50, kClasses = 7;
  std::vector<float> scores(kImages * kClasses);
  std::vector<int64_t> labels(kImages);
  for (float& s : scores) s = static_cast<float>(random() % 100);
  for (int64_t& l : labels) l = static_cast<int64_t>(random() % kClasses);
  TopKAccumulator whole(3), part(3), rest(3);
  whole.add(scores, labels);
  const auto cut = [&](TopKAccumulator& into, size_t first, size_t count) {
    into.add(std::span(scores).subspan(first * kClasses, count * kClasses), std::span(labels).subspan(first, count));
  };
  cut(part, 0, 20);
  cut(rest, 20, 30);
  part.merge(rest);
  part.merge(TopKAccumulator(3));
  EXPECT_EQ(part.top_1_hits(), whole.top_1_hits());
  EXPECT_EQ(part.top_k_hits(), whole.top_k_hits());
  EXPECT_TRUE(std::ranges::equal(part.confusion_matrix(), whole.confusion_matrix()));
}

TEST(TopKAccumulator, AClassWithoutImagesHasNoAccuracy) {
  TopKAccumulator accuracy(1);
  accuracy.add(std::vector<float>{1, 0}, std::vector<int64_t>{0});
  EXPECT_EQ(accuracy.per_class_accuracy()[0], 1);
  EXPECT_TRUE(std::isnan(accuracy.per_class_accuracy()[1]));
}

TEST(TopKAccumulator, RefusesInconsistentInput) {
  TopKAccumulator accuracy(1);
  EXPECT_THROW(accuracy.add(std::vector<float>{1, 0, 2}, std::vector<int64_t>{0, 1}), InternalError);
  EXPECT_THROW(accuracy.add(std::vector<float>{1, 0}, std::vector<int64_t>{2}), InternalError);
  EXPECT_THROW(TopKAccumulator(0), InternalError);
}

}  // namespace
}  // namespace octet::metrics

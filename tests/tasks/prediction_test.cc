#include "tasks/prediction.h"

#include <gtest/gtest.h>

namespace octet::tasks {
namespace {

TEST(Agreement, OfClassesIsTheBestOne) {
  EXPECT_TRUE(agree(ClassScores{{0.2f, 0.8f}}, ClassScores{{0.4f, 0.6f}}));
  EXPECT_FALSE(agree(ClassScores{{0.2f, 0.8f}}, ClassScores{{0.6f, 0.4f}}));
}

TEST(Agreement, OfObjectsIsThatTheSureOnesAreThere) {
  const Objects sure = {{.box = {0, 0, 100, 100}, .label = 1, .score = 0.9f}};
  Objects other = sure;
  other[0].score = 0.49f;  // less sure, but there
  other.push_back({.box = {200, 0, 300, 100}, .label = 0, .score = 0.3f});
  EXPECT_TRUE(agree(sure, other));
  EXPECT_TRUE(agree(other, sure));
  other[1].score = 0.59f;
  EXPECT_TRUE(agree(sure, other)) << "at the border of being kept";
  other[1].score = 0.61f;
  EXPECT_FALSE(agree(sure, other)) << "an object that one alone is sure of";
  EXPECT_FALSE(agree(sure, Objects{{.box = {0, 0, 100, 100}, .label = 2, .score = 0.9f}})) << "another class";
  EXPECT_FALSE(agree(sure, Objects{{.box = {0, 0, 100, 40}, .label = 1, .score = 0.9f}})) << "another place";
  EXPECT_TRUE(agree(sure, Objects{{.box = {0, 0, 100, 60}, .label = 1, .score = 0.9f}})) << "another cluster of it";
  EXPECT_TRUE(agree(Objects{}, Objects{}));
}

TEST(Distance, OfClassesIsThatOfTheProbabilities) {
  const Distance far = distance(ClassScores{{0.2f, 0.8f}}, ClassScores{{0.25f, 0.75f}}),
                 near = distance(ClassScores{{0.2f, 0.8f}}, ClassScores{{0.205f, 0.795f}});
  EXPECT_EQ(far.compared, 1);
  EXPECT_NEAR(far.score, 0.05, 1e-6);
  EXPECT_EQ(far.near, 0);
  EXPECT_FALSE(far.of_boxes);
  EXPECT_EQ(near.near, 1);
}

TEST(Distance, OfObjectsIsThatOfTheSureOnes) {
  const Objects a = {{.box = {0, 0, 100, 100}, .label = 1, .score = 0.9f},
                     {.box = {200, 0, 300, 100}, .label = 0, .score = 0.7f},
                     {.box = {400, 0, 500, 100}, .label = 0, .score = 0.3f},
                     {.box = {600, 0, 700, 100}, .label = 0, .score = 0.8f}};
  const Objects b = {{.box = {0, 0.25f, 99.5f, 100}, .label = 1, .score = 0.905f},  // near
                     {.box = {200, 2, 300, 100}, .label = 0, .score = 0.59f},       // sure in the other alone
                     {.box = {600, 0, 700, 100}, .label = 1, .score = 0.8f}};       // of another class
  for (const Distance& d : {distance(a, b), distance(b, a)}) {
    EXPECT_EQ(d.compared, 4);
    EXPECT_EQ(d.unmatched, 2);
    EXPECT_EQ(d.near, 1);
    EXPECT_EQ(d.box, 2);
    EXPECT_NEAR(d.score, 0.11, 1e-6);
  }
  Distance sum = distance(a, a);
  EXPECT_EQ(sum.near, 3);
  EXPECT_EQ(sum.box, 0);
  sum.merge(distance(a, b));
  EXPECT_EQ(sum.compared, 7);
  EXPECT_TRUE(sum.of_boxes);
  EXPECT_EQ(sum.box, 2);
}

// The coverages of an object add up to more, the larger it is; so do their differences.
TEST(Distance, OfScoresAboveOneIsAShareOfThem) {
  const Objects a = {{.box = {0, 0, 9, 9}, .label = 0, .score = 10}},
                b = {{.box = {0, 0, 9, 9}, .label = 0, .score = 8}};
  EXPECT_NEAR(distance(a, b).score, 0.2, 1e-12);
  EXPECT_NEAR(distance(b, a).score, 0.2, 1e-12);
}

TEST(Agreement, IsToldInShort) {
  EXPECT_EQ(summary(ClassScores{{0.25f, 0.75f}}), "class 1 (0.7500)");
  EXPECT_EQ(summary(Objects{{.box = {}, .label = 0, .score = 0.9f}, {.box = {}, .label = 0, .score = 0.1f}}),
            "1 sure objects");
}

}  // namespace
}  // namespace octet::tasks

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

TEST(Agreement, IsToldInShort) {
  EXPECT_EQ(summary(ClassScores{{0.25f, 0.75f}}), "class 1 (0.7500)");
  EXPECT_EQ(summary(Objects{{.box = {}, .label = 0, .score = 0.9f}, {.box = {}, .label = 0, .score = 0.1f}}),
            "1 sure objects");
}

}  // namespace
}  // namespace octet::tasks

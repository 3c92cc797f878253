#include "vision/dbscan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octet::vision {
namespace {

using testing::ElementsAre;

Box at(float x) {
  return {x, 0, x + 10, 10};
}
constexpr float kOne = 1;

// Distances of boxes 10 wide that are d apart: 1 - (10 - d) / (10 + d): d = 1: 0.18, d = 2: 0.33, d = 3: 0.46.
TEST(Dbscan, TwoHeapsAndAStranger) {
  const std::vector<Box> boxes{at(0), at(1), at(100), at(2), at(101), at(50)};
  const std::vector<float> weights(boxes.size(), kOne);
  EXPECT_THAT(dbscan(boxes, weights, {.eps = 0.2f, .min_weight = 2}), ElementsAre(0, 0, 1, 0, 1, -1));
}

TEST(Dbscan, AChainIsOneCluster) {
  std::vector<Box> boxes;
  for (int i = 0; i < 30; ++i) boxes.push_back(at(static_cast<float>(i)));
  const std::vector<float> weights(boxes.size(), kOne);
  EXPECT_THAT(dbscan(boxes, weights, {.eps = 0.2f, .min_weight = 2}), testing::Each(0));
}

TEST(Dbscan, TheEdgeOfAClusterDoesNotExtendIt) {
  // The fourth box is a neighbor of a core but none itself, so the fifth is not reached.
  const std::vector<Box> boxes{at(0), at(1), at(2), at(3.1f), at(4.2f)};
  const std::vector<float> weights{1, 1, 1, 0.5f, 0.2f};
  // Neighborhoods at eps 0.2 (up to 1.1 apart): weights 2, 3, 2.5, 1.7, 0.7.
  EXPECT_THAT(dbscan(boxes, weights, {.eps = 0.2f, .min_weight = 2.5f}), ElementsAre(0, 0, 0, 0, -1));
}

TEST(Dbscan, WeightsDecideWhatIsACore) {
  const std::vector<Box> boxes{at(0), at(1)};
  EXPECT_THAT(dbscan(boxes, std::vector{0.4f, 0.5f}, {.eps = 0.2f, .min_weight = 1}), ElementsAre(-1, -1));
  EXPECT_THAT(dbscan(boxes, std::vector{0.5f, 0.5f}, {.eps = 0.2f, .min_weight = 1}), ElementsAre(0, 0));
  EXPECT_THAT(dbscan(std::vector{at(0)}, std::vector{1.0f}, {.eps = 0.2f, .min_weight = 1}), ElementsAre(0));
}

TEST(Dbscan, BoxesWithoutAreaAreTheirOwnNeighbors) {
  EXPECT_THAT(dbscan(std::vector{Box{1, 1, 1, 1}}, std::vector{2.0f}), ElementsAre(0));
  EXPECT_TRUE(dbscan({}, {}).empty());
}

}  // namespace
}  // namespace octet::vision

#include "data/epoch_order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "data/counter_rng.h"

namespace octet::data {
namespace {

std::vector<int64_t> images_of(const std::vector<EpochOrder::Draw>& draws) {
  std::vector<int64_t> out;
  for (const EpochOrder::Draw& draw : draws) out.push_back(draw.image);
  return out;
}

// The order that runs had before there were portions, by which they can be resumed and repeated.
TEST(EpochOrder, OfOnePortionIsAShuffleOfAll) {
  std::vector<int64_t> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(images_of(EpochOrder({{.images = 50}}, 9, false).draws(3)), expected);
  CounterRng random(9, 0x6f72646572, 3);
  for (int64_t i = 49; i > 0; --i) std::swap(expected[static_cast<size_t>(i)], expected[random.below(i + 1)]);
  EXPECT_EQ(images_of(EpochOrder({{.images = 50}}, 9, true).draws(3)), expected);
  EXPECT_EQ(images_of(EpochOrder({{.images = 20}, {.images = 30}}, 9, true).draws(3)), expected);
}

TEST(EpochOrder, WeightsSayHowOftenImagesCome) {
  // 2 * 6, 0.4 * 10, 2.25 * 4 and, as 0.1 * 2 rounds to none, one.
  const std::vector<Portion> portions = {{6, 2}, {10, 0.4}, {4, 2.25}, {2, 0.1}};
  const EpochOrder order(portions, 5, true);
  ASSERT_EQ(order.size(), 12 + 4 + 9 + 1);
  std::map<int64_t, int64_t> sum;
  constexpr int kEpochs = 20;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<EpochOrder::Draw> draws = order.draws(epoch);
    ASSERT_EQ(static_cast<int64_t>(draws.size()), order.size());
    EXPECT_EQ(draws, EpochOrder(portions, 5, true).draws(epoch));
    std::map<int64_t, std::vector<int64_t>> repetitions;
    for (const EpochOrder::Draw& draw : draws) repetitions[draw.image].push_back(draw.repetition);
    for (auto& [image, counted] : repetitions) {
      std::ranges::sort(counted);  // 0, 1, ... : no two draws of an image are alike
      for (size_t i = 0; i < counted.size(); ++i) EXPECT_EQ(counted[i], static_cast<int64_t>(i));
      sum[image] += static_cast<int64_t>(counted.size());
    }
    for (int64_t image = 0; image < 6; ++image) EXPECT_EQ(repetitions[image].size(), 2u);
    for (int64_t image = 6; image < 16; ++image) EXPECT_LE(repetitions[image].size(), 1u);
    for (int64_t image = 16; image < 20; ++image) EXPECT_GE(repetitions[image].size(), 2u);
  }
  for (int64_t image = 6; image < 16; ++image) EXPECT_EQ(sum[image], kEpochs * 4 / 10);
  for (int64_t image = 16; image < 20; ++image) EXPECT_EQ(sum[image], kEpochs * 9 / 4);
  for (int64_t image = 20; image < 22; ++image) EXPECT_EQ(sum[image], kEpochs / 2);
}

TEST(EpochOrder, DependsOnSeedAndEpoch) {
  const std::vector<Portion> portions = {{30, 0.5}, {10, 1}};
  EXPECT_NE(EpochOrder(portions, 1, true).draws(0), EpochOrder(portions, 1, true).draws(1));
  EXPECT_NE(EpochOrder(portions, 1, true).draws(0), EpochOrder(portions, 2, true).draws(0));
  EXPECT_NE(EpochOrder(portions, 1, false).draws(0), EpochOrder(portions, 2, false).draws(0));  // which come is random
}

}  // namespace
}  // namespace octet::data

#include "app/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace octet::app {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

OutputComparison compared(const std::vector<float>& a, const std::vector<float>& b) {
  OutputComparison sum;
  compare_values(a, b, sum);
  return sum;
}

TEST(Comparison, IsSignalToNoiseCosineAndLargestDifference) {
  const OutputComparison sum = compared({3, 4}, {3, 3});
  EXPECT_EQ(sum.elements, 2);
  EXPECT_EQ(sum.different, 1);
  EXPECT_NEAR(sum.sqnr_db(), 10 * std::log10(25.0 / 1), 1e-12);
  EXPECT_NEAR(sum.cosine(), 21 / (5 * std::sqrt(18.0)), 1e-12);
  EXPECT_EQ(sum.largest_difference, 1);
  EXPECT_EQ(sum.magnitude, 4);
}

TEST(Comparison, AddsUpOverBatches) {
  OutputComparison sum = compared({3}, {3});
  compare_values(std::vector<float>{4}, std::vector<float>{3}, sum);
  const OutputComparison once = compared({3, 4}, {3, 3});
  EXPECT_EQ(sum.sqnr_db(), once.sqnr_db());
  EXPECT_EQ(sum.cosine(), once.cosine());
}

TEST(Comparison, OfTheSameIsInfinite) {
  const OutputComparison sum = compared({1, kNan, kInf}, {1, kNan, kInf});
  EXPECT_EQ(sum.different, 0);
  EXPECT_TRUE(std::isinf(sum.sqnr_db()));
  EXPECT_EQ(sum.cosine(), 1);
  EXPECT_EQ(compared({0, 0}, {0, 0}).cosine(), 1);
}

TEST(Comparison, WhatIsNoNumberInOneAloneIsInfinitelyFar) {
  for (const auto& [a, b] : {std::pair(1.f, kNan), std::pair(kInf, 1.f), std::pair(kInf, -kInf)}) {
    const OutputComparison sum = compared({a, 2}, {b, 2});
    EXPECT_EQ(sum.different, 1);
    EXPECT_TRUE(std::isinf(sum.largest_difference));
    EXPECT_EQ(sum.sqnr_db(), -std::numeric_limits<double>::infinity());
  }
}

TEST(Comparison, CountsClassesAndThoseThatAreSure) {
  OutputComparison sum;
  const auto add = [&](const std::vector<float>& a, const std::vector<float>& b, int64_t image) {
    compare_classes(a, metrics::ScoreKind::kProbabilities, b, image, 0.1, sum);
  };
  add({0.9f, 0.1f, 0}, {5, 1, 0}, 10);          // sure, same
  add({0.5f, 0.45f, 0.05f}, {0, 2, 1}, 11);     // unsure, another class
  add({0.25f, 0.125f, 0.625f}, {9, 0, 1}, 12);  // sure, another class
  EXPECT_EQ(sum.images, 3);
  EXPECT_EQ(sum.agree, 1);
  EXPECT_EQ(sum.sure, 2);
  EXPECT_EQ(sum.sure_agree, 1);
  ASSERT_EQ(sum.differences.size(), 2u);
  EXPECT_EQ(sum.differences[1].image, 12);
  EXPECT_EQ(sum.differences[1].first, 2);
  EXPECT_EQ(sum.differences[1].second, 0);
  EXPECT_NEAR(sum.differences[0].lead, 0.05, 1e-6);
  EXPECT_EQ(sum.largest_lead(), 0.375);
  EXPECT_NEAR(sum.agreement(), 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace octet::app

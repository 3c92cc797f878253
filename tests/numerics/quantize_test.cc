#include "numerics/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "numerics/accumulator_bound.h"

namespace octet::numerics {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Quantize, RoundsHalfToEven) {
  const QuantParams p{.scale = 1.0f};
  EXPECT_EQ(quantize(0.5f, p), 0);
  EXPECT_EQ(quantize(1.5f, p), 2);
  EXPECT_EQ(quantize(2.5f, p), 2);
  EXPECT_EQ(quantize(-0.5f, p), 0);
  EXPECT_EQ(quantize(-1.5f, p), -2);
}

TEST(Quantize, SaturatesAndHasAValueForEveryFloat) {
  const QuantParams s8{.scale = 0.1f};
  EXPECT_EQ(quantize(1e30f, s8), 127);
  EXPECT_EQ(quantize(-1e30f, s8), -128);
  EXPECT_EQ(quantize(kInf, s8), 127);
  EXPECT_EQ(quantize(-kInf, s8), -128);
  EXPECT_EQ(quantize(kNan, s8), 0);
  const QuantParams u8{.scale = 0.1f, .zero_point = 100, .qmin = 0, .qmax = 255};
  EXPECT_EQ(quantize(kNan, u8), 100);
  EXPECT_EQ(quantize(kInf, u8), 255);
  EXPECT_EQ(quantize(-kInf, u8), 0);
  EXPECT_EQ(quantize(-5.0f, u8), 50);
}

// x * (1 / s) differs from x / s for some x: the contract is the division.
TEST(Quantize, DividesInsteadOfMultiplyingByAReciprocal) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  int differ = 0;
  for (int i = 0; i < 200000; ++i) {
    const float scale = 0.003f + 0.001f * uniform(random);
    const float x = (std::floor(uniform(random) * 100) + 0.5f) * scale;
    const int32_t q = quantize(x, {.scale = scale});
    EXPECT_EQ(q, std::clamp(static_cast<int>(std::nearbyint(static_cast<double>(x / scale))), -128, 127));
    differ += q != std::clamp(static_cast<int>(std::nearbyintf(x * (1.0f / scale))), -128, 127);
  }
  EXPECT_GT(differ, 0);
}

TEST(FakeQuantize, IsIdempotent) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 100000; ++i) {
    const QuantParams p{.scale = std::exp(normal(random) * 3)};
    const float once = fake_quantize(normal(random) * p.scale * 60, p);
    EXPECT_EQ(fake_quantize(once, p), once);
    EXPECT_TRUE(inside_range(once, p));
  }
}

TEST(InsideRange, IsFalseExactlyWhereClipped) {
  const QuantParams p{.scale = 0.5f};
  EXPECT_TRUE(inside_range(127 * 0.5f, p));
  EXPECT_TRUE(inside_range(127.4f * 0.5f, p));
  EXPECT_FALSE(inside_range(128 * 0.5f, p));
  EXPECT_TRUE(inside_range(-128 * 0.5f, p));
  EXPECT_FALSE(inside_range(-129 * 0.5f, p));
  EXPECT_FALSE(inside_range(kNan, p));
}

TEST(Scale, OfAnEmptyRangeIsStillPositive) {
  EXPECT_EQ(scale_from_amax(127.0f), 1.0f);
  EXPECT_EQ(scale_from_amax(255.0f, 255), 1.0f);
  EXPECT_GT(scale_from_amax(0.0f), 0.0f);
}

TEST(Requantize, MultipliesOnceAndClampsToTheCodes) {
  EXPECT_EQ(requantize(1000, 0.05f, 0, -128, 127), 50);
  EXPECT_EQ(requantize(1000000, 0.05f, 0, -128, 127), 127);
  EXPECT_EQ(requantize(-1000000, 0.05f, 0, -128, 127), -128);
  EXPECT_EQ(requantize(-1000, 0.05f, 128, 128, 255), 128);  // a ReLU: the low limit is the zero point
  EXPECT_EQ(requantize(5, 0.5f, 10, 0, 255), 12);           // 2.5 rounds to 2
}

TEST(Requantize, WithAResidualRoundsOnce) {
  // 10.4 + 0.4 = 10.8 -> 11, while rounding twice would give 10.
  EXPECT_EQ(requantize_with_residual(104, 0.1f, 4, 0.1f, 0, -128, 127), 11);
  EXPECT_EQ(add_quantized(104, 0.1f, 4, 0.1f, 0, -128, 127), 11);
}

TEST(Bias, IsRoundedInUnitsOfTheAccumulator) {
  EXPECT_EQ(quantize_bias(1.0f, 0.5f, 0.25f), 8);
  EXPECT_EQ(quantize_bias(1e30f, 1e-6f, 1e-6f), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(quantize_bias(-1e30f, 1e-6f, 1e-6f), std::numeric_limits<int32_t>::min());
}

TEST(AccumulatorBound, HoldsForTheWorstInput) {
  const std::vector<int8_t> weights = {127, -127, 5, -6};
  EXPECT_EQ(accumulator_bound(weights, -10, 0, -128, 127), 10 + 128 * 265);
  EXPECT_EQ(accumulator_bound(weights, 10, 200, 0, 255), 10 + 200 * 265);
}

}  // namespace
}  // namespace octet::numerics

#include "ir/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace octet::ir {
namespace {

TEST(Half, EveryHalfComesBack) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float value = half_to_float(static_cast<uint16_t>(h));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
      continue;
    }
    ASSERT_EQ(float_to_half(value), h);
  }
}

// Of the two halves around a float the nearer one; of two as near that with the even last bit.
TEST(Half, RoundsToTheNearest) {
  std::mt19937 random(3);
  for (int i = 0; i < 200'000; ++i) {
    const auto h = static_cast<uint16_t>(random() % 0x7bff);  // finite, and so is its neighbor
    const double low = half_to_float(h), high = half_to_float(static_cast<uint16_t>(h + 1));
    const float x = i % 3 == 0 ? static_cast<float>((low + high) / 2)
                               : static_cast<float>(low + (high - low) * static_cast<double>(random() % 4096) / 4096);
    const double to_low = x - low, to_high = high - x;
    const uint16_t nearest = to_low < to_high || (to_low == to_high && h % 2 == 0) ? h : h + 1;
    ASSERT_EQ(float_to_half(x), nearest) << x;
    ASSERT_EQ(float_to_half(-x), nearest | 0x8000) << x;
  }
}

TEST(Half, BeyondTheLargest) {
  EXPECT_EQ(half_to_float(float_to_half(65519.0f)), kLargestHalf);
  EXPECT_TRUE(std::isinf(half_to_float(float_to_half(65520.0f))));
  EXPECT_EQ(half_to_float(float_to_half(-1e30f)), -INFINITY);
  EXPECT_EQ(float_to_half(INFINITY), 0x7c00);
  EXPECT_EQ(float_to_half(1e-10f), 0);
}

}  // namespace
}  // namespace octet::ir

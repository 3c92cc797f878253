#include "numerics/quantize_span.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "numerics/accumulator_bound.h"

namespace octet::numerics {
namespace {

const float kNotANumber = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

// Every half step of the codes and its neighbors, far values, and what is no number.
std::vector<float> probes(float scale) {
  std::vector<float> out{0.0f, -0.0f, kNotANumber, kInfinity, -kInfinity, 3e38f, -3e38f, 1e-40f, -1e-40f};
  for (int half = -600; half <= 600; ++half) {
    const float x = static_cast<float>(half) * 0.5f * scale;
    out.insert(out.end(), {x, std::nextafter(x, kInfinity), std::nextafter(x, -kInfinity)});
  }
  return out;
}

TEST(QuantizeSpan, IsQuantizeOfEveryElement) {
  for (const float scale : {1.0f, 0.1f, 0.00731f, 3e-39f, 1e30f})
    for (const QuantParams p : {QuantParams{scale, 0, -127, 127}, QuantParams{scale, 0, -128, 127},
                                QuantParams{scale, 128, 0, 255}, QuantParams{scale, 7, 0, 100}}) {
      const std::vector<float> x = probes(scale);
      std::vector<int8_t> codes(x.size());
      ASSERT_TRUE(quantize_centered(x, p, codes));
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(codes[i], quantize(x[i], p) - p.zero_point) << x[i] << " with scale " << scale;
    }
}

TEST(QuantizeSpan, RefusesWhatLeavesS8AndOnlyThat) {
  const QuantParams p{.scale = 1, .zero_point = 10, .qmin = 0, .qmax = 255};
  std::vector<int8_t> codes(2);
  EXPECT_TRUE(quantize_centered(std::vector<float>{127, -10}, p, codes));
  EXPECT_EQ(codes, (std::vector<int8_t>{127, -10}));
  EXPECT_FALSE(quantize_centered(std::vector<float>{0, 128}, p, codes));
}

TEST(QuantizeSpan, DequantizesEveryCode) {
  const QuantParams p{.scale = 0.0371f, .zero_point = 3, .qmin = -128, .qmax = 127}, u{0.0371f, 131, 0, 255};
  std::vector<int8_t> s8;
  std::vector<uint8_t> u8;
  for (int i = 0; i < 256; ++i) s8.push_back(static_cast<int8_t>(i - 128)), u8.push_back(static_cast<uint8_t>(i));
  std::vector<float> from_s8(256), from_u8(256);
  dequantize(s8, p, from_s8);
  dequantize(u8, u, from_u8);
  for (size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(from_s8[i], dequantize(s8[i], p));
    EXPECT_EQ(from_u8[i], dequantize(u8[i], u));
  }
}

TEST(QuantizeSpan, FindsOneBadNumberAnywhere) {
  std::vector<float> values(67, -3.4e38f);
  EXPECT_TRUE(all_finite(values));
  EXPECT_TRUE(all_finite({}));
  for (size_t i = 0; i < values.size(); ++i)
    for (const float bad : {kNotANumber, -kNotANumber, kInfinity, -kInfinity}) {
      const float good = std::exchange(values[i], bad);
      EXPECT_FALSE(all_finite(values)) << i;
      values[i] = good;
    }
}

TEST(QuantizeSpan, SumsMoreThan32BitsHold) {
  const std::vector<int8_t> lowest((1 << 25) + 3, -128);
  const auto count = static_cast<int64_t>(lowest.size());
  EXPECT_EQ(sum(lowest), -128 * count);
  EXPECT_EQ(sum_of_magnitudes(lowest), 128 * count);
  std::mt19937 random(5);
  std::vector<int8_t> values(100'001);
  int64_t expected = 0, magnitude = 0;
  for (int8_t& v : values) {
    v = static_cast<int8_t>(random());
    expected += v, magnitude += std::abs(v);
  }
  EXPECT_EQ(sum(values), expected);
  EXPECT_EQ(accumulator_bound(values, 0, 0, 0, 1), magnitude);
}

}  // namespace
}  // namespace octet::numerics

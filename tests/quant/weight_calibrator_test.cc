#include "quant/weight_calibrator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "numerics/quantize.h"

namespace octet::quant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(WeightScalesTest, MaxAlongAnyAxis) {
  const ir::Tensor w = ir::Tensor::of<float>({2, 3}, std::vector<float>{1, -2, 3, -4, 5, -6});
  EXPECT_EQ(weight_scales(w, 0, "w"), (std::vector<float>{3.0f / 127, 6.0f / 127}));
  EXPECT_EQ(weight_scales(w, 1, "w"), (std::vector<float>{4.0f / 127, 5.0f / 127, 6.0f / 127}));
  EXPECT_EQ(weight_scales(w, -1, "w"), (std::vector<float>{6.0f / 127}));
}

TEST(WeightScalesTest, MseIsTheBestOfItsGrid) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  constexpr size_t kChannel = 20000;
  std::vector<float> values(4 * kChannel);
  for (float& v : values) v = normal(random);
  values[10] = 5;  // an outlier that is better clipped
  const ir::Tensor w = ir::Tensor::of<float>({4, kChannel}, values);
  const std::vector<float> chosen = weight_scales(w, 0, "w", {.method = WeightMethod::kMse});
  for (size_t c = 0; c < 4; ++c) {
    const auto error = [&](float scale) {
      double sum = 0;
      for (size_t i = c * kChannel; i < (c + 1) * kChannel; ++i)
        sum += std::pow(static_cast<double>(values[i]) - numerics::fake_quantize(values[i], {scale, 0, -127, 127}), 2);
      return sum;
    };
    const float full = weight_scales(w, 0, "w")[c];
    for (int percent = 50; percent <= 100; percent += 5)
      EXPECT_LE(error(chosen[c]), error(full * static_cast<float>(percent) / 100) * (1 + 1e-3)) << c << " " << percent;
  }
  EXPECT_LT(chosen[0], 0.95f * weight_scales(w, 0, "w")[0]);
}

TEST(WeightScalesTest, RefusesWeightsThatAreNotFinite) {
  const ir::Tensor w = ir::Tensor::of<float>({2}, std::vector<float>{1, INFINITY});
  EXPECT_THAT([&] { weight_scales(w, 0, "conv1.weight"); },
              ThrowsMessage<UserError>(HasSubstr("weight 'conv1.weight' holds inf")));
  const ir::Tensor none = ir::Tensor::of<float>({int64_t{1} << 40, 0}, std::vector<float>());
  EXPECT_THAT([&] { weight_scales(none, 0, "fc.weight"); },
              ThrowsMessage<UserError>(HasSubstr("weight 'fc.weight' of shape [1099511627776, 0] has no elements")));
}

}  // namespace
}  // namespace octet::quant

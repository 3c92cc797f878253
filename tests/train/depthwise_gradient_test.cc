// The kernel for the gradient of a depthwise convolution's weights: against sums in float64, and the same bits on every
// instruction set.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "base/cpu_features.h"
#include "train/ops_kernels.h"

namespace octet::train {
namespace {

struct Case {
  int64_t images, channels, in_h, in_w, kernel_h, kernel_w, stride, dilation, pad_top, pad_left, out_h, out_w;
};
// Vectors that are not full, windows wider than the image and than what registers hold, outputs that see no pixel.
constexpr Case kCases[] = {
    {3, 16, 6, 7, 3, 3, 1, 1, 1, 1, 6, 7},     {2, 40, 9, 8, 5, 5, 2, 1, 2, 2, 5, 4},
    {2, 5, 4, 4, 5, 5, 1, 1, 2, 2, 4, 4},      {1, 33, 5, 5, 7, 7, 1, 1, 3, 3, 5, 5},
    {2, 17, 12, 20, 3, 9, 1, 2, 2, 8, 12, 20}, {1, 16, 3, 40, 1, 17, 1, 1, 0, 8, 3, 40},
    {2, 3, 2, 2, 3, 3, 3, 1, 4, 5, 4, 4},      {4, 48, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1},
};

std::vector<float> random_values(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& v : out) v = uniform(random);
  return out;
}

std::vector<uint16_t> upper_halves(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float v : values) out.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16));
  return out;
}

template <typename T>
kernels::DepthwiseGradient<T> arguments(const Case& c, const std::vector<T>& x, const std::vector<T>& grad) {
  return {.channels = c.channels,
          .in_h = c.in_h,
          .in_w = c.in_w,
          .out_h = c.out_h,
          .out_w = c.out_w,
          .kernel_h = c.kernel_h,
          .kernel_w = c.kernel_w,
          .stride_h = c.stride,
          .stride_w = c.stride,
          .dilation_h = c.dilation,
          .dilation_w = c.dilation,
          .pad_top = c.pad_top,
          .pad_left = c.pad_left,
          .x = x.data(),
          .grad = grad.data()};
}

template <typename T>
std::vector<float> gradient(const kernels::Table<T>& table, const Case& c, const std::vector<T>& x,
                            const std::vector<T>& grad) {
  std::vector<float> sum(static_cast<size_t>(c.kernel_h * c.kernel_w * c.channels), 0.0f);
  // In two shares of images and of channels.
  const int64_t image = c.images / 2, channel = c.channels / 32 * 16;
  const auto d = arguments(c, x, grad);
  for (const auto& [begin, end] : {std::pair{int64_t{0}, image}, {image, c.images}}) {
    table.depthwise_gradient(d, begin, end, 0, channel, sum.data());
    table.depthwise_gradient(d, begin, end, channel, c.channels, sum.data());
  }
  return sum;
}

std::vector<double> in_float64(const Case& c, const std::vector<float>& x, const std::vector<float>& grad) {
  std::vector<double> sum(static_cast<size_t>(c.kernel_h * c.kernel_w * c.channels), 0.0);
  for (int64_t n = 0; n < c.images; ++n)
    for (int64_t oy = 0; oy < c.out_h; ++oy)
      for (int64_t ox = 0; ox < c.out_w; ++ox)
        for (int64_t ky = 0; ky < c.kernel_h; ++ky)
          for (int64_t kx = 0; kx < c.kernel_w; ++kx) {
            const int64_t y = oy * c.stride - c.pad_top + ky * c.dilation,
                          at = ox * c.stride - c.pad_left + kx * c.dilation;
            if (y < 0 || y >= c.in_h || at < 0 || at >= c.in_w) continue;
            for (int64_t ch = 0; ch < c.channels; ++ch)
              sum[static_cast<size_t>((ky * c.kernel_w + kx) * c.channels + ch)] +=
                  static_cast<double>(x[static_cast<size_t>(((n * c.in_h + y) * c.in_w + at) * c.channels + ch)]) *
                  grad[static_cast<size_t>(((n * c.out_h + oy) * c.out_w + ox) * c.channels + ch)];
          }
  return sum;
}

TEST(DepthwiseGradient, IsTheSumOfProducts) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(::testing::Message() << c.channels << " channels, " << c.kernel_h << "x" << c.kernel_w);
    const std::vector<float> x = random_values(c.images * c.in_h * c.in_w * c.channels, 1),
                             grad = random_values(c.images * c.out_h * c.out_w * c.channels, 2);
    const std::vector<double> right = in_float64(c, x, grad);
    const std::vector<float> found = gradient(kernels::table<float>(), c, x, grad);
    for (size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(found[i], right[i], 1e-5 * (1 + std::abs(right[i]))) << i;
    // Of upper halves, whose products are exact: no more than the sums differ.
    const std::vector<uint16_t> low_x = upper_halves(x), low_grad = upper_halves(grad);
    const auto wide = [](const std::vector<uint16_t>& v) {
      std::vector<float> out;
      for (const uint16_t half : v) out.push_back(std::bit_cast<float>(uint32_t{half} << 16));
      return out;
    };
    const std::vector<double> low_right = in_float64(c, wide(low_x), wide(low_grad));
    const std::vector<float> low = gradient(kernels::table<kernels::Bf16>(), c, low_x, low_grad);
    for (size_t i = 0; i < low_right.size(); ++i)
      ASSERT_NEAR(low[i], low_right[i], 1e-5 * (1 + std::abs(low_right[i]))) << i;
  }
}

TEST(DepthwiseGradient, HasTheSameBitsOnEveryInstructionSet) {
  std::vector<const kernels::Tables*> all;
  if (cpu_features().avx2) all.push_back(&kernels::tables_avx2());
  if (cpu_features().avx512) all.push_back(&kernels::tables_avx512());
  for (const Case& c : kCases) {
    const std::vector<float> x = random_values(c.images * c.in_h * c.in_w * c.channels, 3),
                             grad = random_values(c.images * c.out_h * c.out_w * c.channels, 4);
    for (const kernels::Tables* t : all) {
      EXPECT_EQ(gradient(t->f32, c, x, grad), gradient(kernels::tables_base().f32, c, x, grad));
      EXPECT_EQ(gradient(t->bf16, c, upper_halves(x), upper_halves(grad)),
                gradient(kernels::tables_base().bf16, c, upper_halves(x), upper_halves(grad)));
    }
  }
}

}  // namespace
}  // namespace octet::train

#include "train/fake_quant.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/cpu_features.h"
#include "ir/infer.h"
#include "numerics/quantize.h"
#include "train/executor.h"
#include "train/op_cases.h"
#include "train/ops_kernels.h"

namespace octet::train {
namespace {

using testing::floats;
using testing::random_tensor;

// Everyday values, ties (k + 0.5) * scale and their neighbors, values beyond the range, specials.
std::vector<float> hard_values(float scale) {
  std::vector<float> v = floats(random_tensor({3000}, 9, -200 * scale, 300 * scale));
  for (int k = -140; k <= 270; ++k) {
    const float tie = (static_cast<float>(k) + 0.5f) * scale;
    for (const float x : {tie, std::nextafterf(tie, 1e30f), std::nextafterf(tie, -1e30f)}) v.push_back(x);
  }
  const float inf = std::numeric_limits<float>::infinity();
  for (const float x : {0.0f, -0.0f, inf, -inf, std::nanf(""), 3e38f, -3e38f, 1e-40f, -1e-40f}) v.push_back(x);
  return v;
}

struct Setting {
  float scale;
  int32_t zero, qmin, qmax;
};
constexpr Setting kSettings[] = {{0.037f, 0, -128, 127}, {1.0f, 0, -127, 127},   {0.0031f, 0, 0, 255},
                                 {0.5f, 128, 0, 255},    {0.11f, -7, -128, 127}, {1e-12f, 0, -128, 127}};

FakeQuantOptions options_of(const Setting& s) {
  return {.qmin = s.qmin, .qmax = s.qmax, .zero_point = at::scalar_tensor(s.zero, at::TensorOptions().dtype(at::kInt))};
}

void expect_same_bits(const std::vector<float>& actual, const std::vector<float>& expected,
                      const std::vector<float>& x) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << "x = " << x[i] << ": " << actual[i] << ", expected " << expected[i];
}

TEST(FakeQuantize, EqualsTheNumericsContractBitForBit) {
  for (const Setting& s : kSettings) {
    const numerics::QuantParams p{s.scale, s.zero, s.qmin, s.qmax};
    const std::vector<float> x = hard_values(s.scale);
    std::vector<float> numbers, codes;
    for (const float v : x) {
      numbers.push_back(numerics::fake_quantize(v, p));
      codes.push_back(static_cast<float>(numerics::quantize(v, p) - s.zero));
    }
    FakeQuantOptions o = options_of(s);
    const at::Tensor scale = at::scalar_tensor(s.scale, at::TensorOptions().dtype(at::kFloat));
    expect_same_bits(floats(fake_quantize(at::tensor(x), scale, o, at::kFloat)), numbers, x);
    o.codes = true;
    expect_same_bits(floats(fake_quantize(at::tensor(x), scale, o, at::kBFloat16)), codes, x);  // exact in BF16
    o.gradient = quant::ScaleGradient::kLsq;  // the path of ATen operations
    expect_same_bits(floats(fake_quantize(at::tensor(x), scale, o, at::kFloat)), codes, x);
  }
}

TEST(FakeQuantize, QuantizesEveryChannelByItsOwnScale) {
  const at::Tensor w = random_tensor({5, 3, 3, 3}, 4, -1, 1);
  const std::vector<float> scales = {0.01f, 0.02f, 0.004f, 1.0f, 1e-12f};
  for (const at::Tensor& x : {w, w.contiguous(at::MemoryFormat::ChannelsLast)}) {
    FakeQuantOptions o{.axis = 0, .qmin = -127, .qmax = 127};
    const at::Tensor y = fake_quantize(x, at::tensor(scales), o, at::kFloat);
    EXPECT_EQ(y.strides(), x.strides());
    const std::vector<float> in = floats(w), out = floats(y);
    for (size_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(out[i], numerics::fake_quantize(in[i], {scales[i / 27], 0, -127, 127}));
  }
  // Any other axis, also with a zero point a channel.
  FakeQuantOptions o{.axis = 1, .qmin = 0, .qmax = 255, .zero_point = at::tensor(std::vector<int>{3, 128, 250})};
  const std::vector<float> out =
      floats(fake_quantize(w, at::tensor(std::vector<float>{0.01f, 0.02f, 0.03f}), o, at::kFloat));
  const std::vector<float> in = floats(w);
  const int32_t zeros[] = {3, 128, 250};
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t c = i / 9 % 3;
    ASSERT_EQ(out[i], numerics::fake_quantize(in[i], {0.01f * static_cast<float>(c + 1), zeros[c], 0, 255})) << i;
  }
}

TEST(FakeQuantize, PassesTheGradientWhereTheCodeIsNotClipped) {
  for (const Setting& s : kSettings) {
    const numerics::QuantParams p{s.scale, s.zero, s.qmin, s.qmax};
    const std::vector<float> values = hard_values(s.scale);
    for (const bool codes : {false, true}) {
      at::Tensor x = at::tensor(values).set_requires_grad(true);
      FakeQuantOptions o = options_of(s);
      o.codes = codes;
      const at::Tensor scale = at::scalar_tensor(s.scale, at::TensorOptions().dtype(at::kFloat));
      const at::Tensor y = fake_quantize(x, scale, o, at::kFloat);
      const at::Tensor g = random_tensor({static_cast<int64_t>(values.size())}, 3);
      const std::vector<float> grad = floats(torch::autograd::grad({y}, {x}, {g})[0]), upstream = floats(g);
      for (size_t i = 0; i < values.size(); ++i) {
        const float expected = numerics::inside_range(values[i], p) ? upstream[i] : 0.0f;
        ASSERT_FLOAT_EQ(grad[i], codes ? expected / s.scale : expected) << values[i];
      }
    }
  }
}

// Esser et al.: d/ds = round(v/s) - v/s inside, the clipped code outside, times 1 / sqrt(N * qmax).
TEST(FakeQuantize, GivesALearnedScaleItsGradient) {
  const at::Tensor x = random_tensor({4, 50}, 8, -1, 1);
  const at::Tensor g = random_tensor({4, 50}, 9);
  const std::vector<float> scales = {0.01f, 0.005f, 0.002f, 0.02f}, in = floats(x), upstream = floats(g);
  at::Tensor scale = at::tensor(scales).set_requires_grad(true);
  FakeQuantOptions o{.axis = 0, .qmin = -127, .qmax = 127, .gradient = quant::ScaleGradient::kLsq};
  const std::vector<float> actual =
      floats(torch::autograd::grad({fake_quantize(x, scale, o, at::kFloat)}, {scale}, {g})[0]);
  for (size_t row = 0; row < 4; ++row) {
    double expected = 0;
    for (size_t i = row * 50; i < (row + 1) * 50; ++i) {
      const double v = static_cast<double>(in[i]) / static_cast<double>(scales[row]);
      expected += upstream[i] * (v > 127 ? 127 : v < -127 ? -127 : std::nearbyint(v) - v);
    }
    expected /= std::sqrt(50.0 * 127.0);
    EXPECT_NEAR(actual[row], expected, 1e-4 * (1 + std::abs(expected)));
  }
}

// Bhalgat et al. 2020, equations 5 and 6: x^ = s (q - z) with q = clamp(round((x - b) / s), n, p) and z = -b / s; then
// dx^/ds = q - (x - b) / s inside, n or p outside; dx^/db = 0 inside, 1 outside; both times 1 / sqrt(N p).
TEST(FakeQuantize, GivesALearnedOffsetItsGradient) {
  const std::vector<float> in = floats(random_tensor({300}, 8, -1, 2)), upstream = floats(random_tensor({300}, 9));
  const double s = 0.125, b = -0.5, n = -8, p = 7;  // z = 4: from -1.5 to 0.375
  for (const bool codes : {false, true}) {
    const auto parameter = [](double value) {
      return at::scalar_tensor(value, at::TensorOptions().dtype(at::kFloat)).set_requires_grad(true);
    };
    at::Tensor x = at::tensor(in).set_requires_grad(true), scale = parameter(s), offset = parameter(b);
    const FakeQuantOptions o{
        .qmin = -8, .qmax = 7, .codes = codes, .gradient = quant::ScaleGradient::kLsqPlus, .offset = offset};
    EXPECT_EQ(zero_point_of(offset.detach(), scale.detach(), o).item<float>(), 4);
    const at::Tensor y = fake_quantize(x, scale, o, at::kFloat), g = at::tensor(upstream);
    const numerics::QuantParams params{.scale = 0.125f, .zero_point = 4, .qmin = -8, .qmax = 7};
    // A gradient of codes is that of numbers times the scale.
    const auto grads = torch::autograd::grad({y}, {x, scale, offset}, {codes ? g * s : g});
    const std::vector<float> of_x = floats(grads[0]), values = floats(y.detach());
    double of_scale = 0, of_offset = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_EQ(values[i] * (codes ? 0.125f : 1), numerics::fake_quantize(in[i], params)) << in[i];
      const double ratio = (in[i] - b) / s, q = std::nearbyint(ratio);
      const bool inside = q >= n && q <= p;
      EXPECT_FLOAT_EQ(of_x[i], inside ? upstream[i] : 0) << in[i];
      of_scale += upstream[i] * (inside ? q - ratio : q > p ? p : n);
      of_offset += inside ? 0 : upstream[i];
    }
    EXPECT_NEAR(grads[1].item<double>(), of_scale / std::sqrt(300 * p), 1e-4 * (1 + std::abs(of_scale)));
    EXPECT_NEAR(grads[2].item<double>(), of_offset / std::sqrt(300 * p), 1e-4 * (1 + std::abs(of_offset)));
  }
}

// Choi et al.: the clip a = s qmax gets dy where x >= a and nothing elsewhere. A step on s moves a as a step on a
// would.
TEST(FakeQuantize, GivesALearnedClipItsGradient) {
  for (const bool is_signed : {false, true}) {
    const at::Tensor g = random_tensor({200}, 9);
    const std::vector<float> in = floats(random_tensor({200}, 8, is_signed ? -1 : 0, 1)), upstream = floats(g);
    for (const bool codes : {false, true}) {
      at::Tensor x = at::tensor(in).set_requires_grad(true);
      at::Tensor scale = at::tensor(std::vector<float>{0.6f / 15}).set_requires_grad(true);
      const float step = 0.6f / 15;
      FakeQuantOptions o{
          .qmin = is_signed ? -15 : 0, .qmax = 15, .codes = codes, .gradient = quant::ScaleGradient::kPact};
      // A gradient of codes is that of numbers times the scale.
      const auto grads =
          torch::autograd::grad({fake_quantize(x, scale, o, at::kFloat)}, {x, scale}, {codes ? g * scale.detach() : g});
      const std::vector<float> of_x = floats(grads[0]);
      double clip = 0;
      for (size_t i = 0; i < in.size(); ++i) {
        const bool above = in[i] / step >= 15, below = is_signed ? in[i] / step <= -15 : in[i] <= 0;
        clip += above ? upstream[i] : below && is_signed ? -upstream[i] : 0;
        ASSERT_FLOAT_EQ(of_x[i], above || below ? 0 : upstream[i]) << in[i];
      }
      EXPECT_NEAR(grads[1].item<double>(), clip / 15, 1e-4 * (1 + std::abs(clip)));
    }
  }
}

TEST(FakeQuantize, FindsTheScaleThatCoversATensor) {
  const at::Tensor x = at::tensor(std::vector<float>{-2.54f, 1.0f, 0.3f, 1.27f}).reshape({2, 2});
  const at::Tensor one = at::scalar_tensor(1.0f, at::TensorOptions().dtype(at::kFloat));
  EXPECT_FLOAT_EQ(current_scale(x, one, {.qmin = -128, .qmax = 127}).item<float>(), 0.02f);  // 127 on both sides
  EXPECT_FLOAT_EQ(current_scale(x, one, {.qmin = 0, .qmax = 255}).item<float>(), 1.27f / 255);
  EXPECT_FLOAT_EQ(current_scale(x * 0, one, {}).item<float>(), numerics::kMinScale);
  const auto rows = floats(current_scale(x, at::ones({2}), {.axis = 0, .qmin = -127, .qmax = 127}));
  EXPECT_FLOAT_EQ(rows[0], 0.02f);
  EXPECT_FLOAT_EQ(rows[1], 0.01f);
  const at::Tensor scale = at::ones({1});
  update_scale(scale, x, {}, 0.25f);
  EXPECT_FLOAT_EQ(scale.item<float>(), 0.75f + 0.25f * 0.02f);
}

// As calibration has it: with a scale of its own, a channel whose weights are zeros would leave no room for its bias.
TEST(FakeQuantize, KeepsTheScalesOfDeadChannelsNearTheOthers) {
  const FakeQuantOptions o{.axis = 0, .qmin = -127, .qmax = 127};
  const at::Tensor scale = at::ones({3}), x = at::zeros({3, 2});
  x[0][1] = 1.27f, x[2][0] = 1e-9f;
  update_scale(scale, x, o, 1);
  const std::vector<float> scales = floats(scale);
  EXPECT_FLOAT_EQ(scales[0], 0.01f);
  EXPECT_FLOAT_EQ(scales[1], 0.01f * numerics::kLeastChannelScale);
  EXPECT_FLOAT_EQ(scales[2], 0.01f * numerics::kLeastChannelScale);
  update_scale(scale, x * 0, o, 1);  // says nothing about scales
  EXPECT_EQ(floats(scale), scales);
}

// One set of results on every instruction set, for odd channel counts too.
template <typename T>
void compare_tables(const kernels::Table<T>& a, const kernels::Table<T>& b, std::vector<T> x, std::vector<T> residual) {
  for (const int64_t channels : {1, 7, 16, 24, 48}) {
    const int64_t rows = static_cast<int64_t>(x.size()) / channels;
    const std::vector<float> multiplier = floats(random_tensor({channels}, 1)),
                             offset = floats(random_tensor({channels}, 2));
    for (int variant = 0; variant < 16; ++variant) {
      std::vector<T> out[2];
      std::vector<uint16_t> mask[2];
      std::vector<float> sums[2];
      std::vector<T> grads[2];
      for (int i = 0; i < 2; ++i) {
        const kernels::Table<T>& t = i == 0 ? a : b;
        out[i].resize(x.size());
        mask[i].resize(rows * kernels::mask_words(channels));
        kernels::Forward<T> f;
        f.channels = channels;
        f.x = x.data();
        if (variant & 1) f.multiplier = multiplier.data(), f.offset = offset.data();
        if (variant & 2) f.residual = residual.data(), f.residual_scale = 0.3f;
        f.clamp = variant & 4;
        f.lower = 0;
        f.upper = 1.5f;
        f.quantize = variant & 8;
        f.scale = 0.01f;
        f.low = -128;
        f.high = 127;
        f.out_scale = 0.01f;
        f.out = out[i].data();
        f.mask = mask[i].data();
        t.forward(f, 0, rows);
        if (channels % 16 != 0)  // bits of channels that do not exist may be anything
          for (int64_t r = 1; r <= rows; ++r)
            mask[i][r * kernels::mask_words(channels) - 1] &= static_cast<uint16_t>((1u << (channels % 16)) - 1);
        sums[i].resize(4 * channels);
        t.statistics(x.data(), channels, offset.data(), 0, rows, &sums[i][0], &sums[i][channels]);
        kernels::Backward<T> g;
        g.channels = channels;
        g.grad = residual.data();
        g.mask = mask[i].data();
        g.x = x.data();
        g.center = offset.data();
        if (variant & 1) g.from_grad = g.from_x = g.constant = multiplier.data();
        g.factor = 0.7f;
        g.residual_factor = 0.2f;
        grads[i].resize(2 * x.size());
        g.grad_x = grads[i].data();
        g.grad_residual = grads[i].data() + x.size();
        t.gradient_sums(g, 0, rows, &sums[i][2 * channels], &sums[i][3 * channels]);
        t.backward(g, 0, rows);
      }
      EXPECT_EQ(out[0], out[1]) << channels << " " << variant;
      EXPECT_EQ(mask[0], mask[1]) << channels << " " << variant;
      EXPECT_EQ(sums[0], sums[1]) << channels << " " << variant;
      EXPECT_EQ(grads[0], grads[1]) << channels << " " << variant;
    }
  }
}

TEST(Kernels, GiveTheSameBitsOnEveryInstructionSet) {
  std::vector<const kernels::Tables*> all;
  if (cpu_features().avx2) all.push_back(&kernels::tables_avx2());
  if (cpu_features().avx512) all.push_back(&kernels::tables_avx512());
  const std::vector<float> x = floats(random_tensor({5040}, 1, -2, 2)), r = floats(random_tensor({5040}, 2, -2, 2));
  const auto halves = [](const std::vector<float>& v) {
    std::vector<uint16_t> out;
    for (const float f : v) out.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(f) >> 16));
    return out;
  };
  for (const kernels::Tables* t : all) {
    compare_tables<float>(kernels::tables_base().f32, t->f32, x, r);
    compare_tables<kernels::Bf16>(kernels::tables_base().bf16, t->bf16, halves(x), halves(r));
  }
}

}  // namespace
}  // namespace octet::train

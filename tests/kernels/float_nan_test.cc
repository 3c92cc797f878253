// NaN and infinities in the float kernels, on every instruction set: NaN stays NaN through sums, limits and extremes,
// infinities are numbers like others, and a quantizer makes the zero point of NaN. And which kernels give the same
// bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/kernels/kernel_table.h"
#include "kernels/conv_cases.h"
#include "numerics/quantize.h"

namespace octet::kernels {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

std::vector<float> plain(std::mt19937& rng, int64_t n) {
  std::normal_distribution<float> normal;
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = normal(rng);
  return v;
}
// About one in `rarity` is NaN or infinite.
std::vector<float> with_specials(std::mt19937& rng, int64_t n, unsigned rarity) {
  constexpr float kSpecials[] = {kNaN, kInf, -kInf, -kNaN};
  std::vector<float> v = plain(rng, n);
  for (float& x : v)
    if (rng() % rarity == 0) x = kSpecials[rng() % 4];
  return v;
}

// NaN where the exact result is, the same infinity, or as near as float sums are.
void expect_like(const std::vector<float>& got, const std::vector<double>& want, const char* what, Isa isa) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << what << " on " << isa_name(isa) << ": " << got[i] << " for NaN at " << i;
    } else if (std::isinf(want[i])) {
      ASSERT_EQ(got[i], static_cast<float>(want[i])) << what << " on " << isa_name(isa) << " at " << i;
    } else {
      ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::fabs(want[i]))) << what << " on " << isa_name(isa) << " at " << i;
    }
  }
}

double limit(double x, double lo, double hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

struct Product {
  int64_t m, n, k;
  std::vector<float> a, w, packed, bias, residual;
  ConvGeometry geometry() const { return {.in_channels = k, .out_channels = n}; }
};
Product random_product(std::mt19937& rng, unsigned rarity) {
  Product p{.m = 7, .n = 1 + static_cast<int64_t>(rng() % 40), .k = 1 + static_cast<int64_t>(rng() % 9)};
  p.a = with_specials(rng, p.m * p.k, rarity), p.w = plain(rng, p.n * p.k);
  p.bias = plain(rng, p.n), p.residual = with_specials(rng, p.m * p.n, rarity);
  p.packed.resize(static_cast<size_t>(float_conv_weight_floats(p.geometry())));
  pack_float_conv_weights(p.geometry(), p.w, p.packed);
  return p;
}

TEST(FloatNaN, ConvolutionsAndProductsKeepIt) {
  std::mt19937 rng(1);
  for (int round = 0; round < 20; ++round) {
    const Product p = random_product(rng, 12);
    const bool clamps = round % 2, adds = round % 4 > 1;
    const float lo = clamps ? 0.0f : -kInf, hi = clamps ? 1.5f : kInf;
    const FloatEpilogue epilogue{
        .bias = p.bias.data(), .residual = adds ? p.residual.data() : nullptr, .lo = lo, .hi = hi};
    std::vector<double> want, product;
    for (int64_t r = 0; r < p.m; ++r)
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < p.k; ++k) sum += double{p.a[r * p.k + k]} * p.w[j * p.k + k];
        product.push_back(sum);
        want.push_back(limit(sum + p.bias[j] + (adds ? p.residual[r * p.n + j] : 0.0f), lo, hi));
      }
    std::vector<float> turned(p.w.size());
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t k = 0; k < p.k; ++k) turned[k * p.n + j] = p.w[j * p.k + k];
    for (Isa isa : supported_isas()) {
      const KernelTable& table = kernels(isa);
      const Range all{0, p.m}, blocks{0, float_conv_blocks(p.geometry())};
      std::vector<float> out(want.size(), 7.0f);
      table.float_gemm(FloatGemmArgs{.a = p.a.data(),
                                     .weights = p.packed.data(),
                                     .c = out.data(),
                                     .m = p.m,
                                     .n = p.n,
                                     .k = p.k,
                                     .epilogue = epilogue},
                       all, blocks);
      expect_like(out, want, "gemm", isa);
      FloatConvArgs conv{.geometry = p.geometry(),
                         .in = p.a.data(),
                         .out = out.data(),
                         .in_h = p.m,
                         .out_h = p.m,
                         .weights = p.packed.data(),
                         .epilogue = epilogue};
      std::fill(out.begin(), out.end(), 7.0f);
      table.float_conv(conv, all, blocks);
      expect_like(out, want, "convolution", isa);
      conv.weights = turned.data();  // 1 x 1: in_channels x out_channels
      std::fill(out.begin(), out.end(), 7.0f);
      table.float_conv_transpose(conv, all);
      expect_like(out, want, "transposed convolution", isa);
      table.float_matmul(
          FloatMatMulArgs{.a = p.a.data(), .b = turned.data(), .c = out.data(), .m = p.m, .n = p.n, .k = p.k}, all);
      expect_like(out, product, "product", isa);
    }
  }
}

TEST(FloatNaN, DepthwiseKeepsIt) {
  std::mt19937 rng(2);
  const int64_t h = 6, w = 5;
  for (const int64_t c : {1, 7, 8, 16, 37}) {
    const std::vector<float> in = with_specials(rng, h * w * c, 20), weights = plain(rng, 9 * c);
    FloatConvArgs a{.geometry = {.in_channels = c,
                                 .out_channels = c,
                                 .groups = c,
                                 .kernel_h = 3,
                                 .kernel_w = 3,
                                 .pad_top = 1,
                                 .pad_left = 1},
                    .in = in.data(),
                    .in_h = h,
                    .in_w = w,
                    .out_h = h,
                    .out_w = w,
                    .weights = weights.data(),
                    .epilogue = {.lo = 0, .hi = 6}};
    std::vector<double> want;
    for (int64_t y = 0; y < h; ++y)
      for (int64_t x = 0; x < w; ++x)
        for (int64_t channel = 0; channel < c; ++channel) {
          double sum = 0;
          for (int64_t i = 0; i < 9; ++i) {
            const int64_t iy = y + i / 3 - 1, ix = x + i % 3 - 1;
            if (iy >= 0 && iy < h && ix >= 0 && ix < w)
              sum += double{in[(iy * w + ix) * c + channel]} * weights[i * c + channel];
          }
          want.push_back(limit(sum, 0, 6));
        }
    for (Isa isa : supported_isas()) {
      std::vector<float> out(want.size(), 7.0f);
      a.out = out.data();
      kernels(isa).float_depthwise(a, Range{0, h});
      expect_like(out, want, "depthwise", isa);
    }
  }
}

// An INT8 convolution with a float output adds a float residual, the only place where it can meet NaN.
TEST(FloatNaN, ResidualOfAnInt8ConvolutionKeepsIt) {
  std::mt19937 rng(3), tactic_rng(3);  // apart: how much the tactics draw differs between machines
  const testing::ConvTail tail{.residual = true, .to_float = true, .narrow = true};
  for (const testing::ConvShape& shape : {testing::square_conv(9, 64, 40, 1, 1), testing::square_conv(12, 32, 48, 3, 1),
                                          testing::square_conv(7, 16, 5, 3, 2)}) {
    const auto c = testing::make_conv_case(rng, shape, tail);
    for (float& r : c->float_residual)
      if (rng() % 5 == 0) r = rng() % 2 ? kNaN : rng() % 2 ? kInf : -kInf;
    const std::vector<uint8_t> want = testing::expected_output(*c);
    int64_t nans = 0;
    for (size_t i = 0; i < want.size() / sizeof(float); ++i) {
      float v;
      std::memcpy(&v, &want[i * sizeof(float)], sizeof(float));
      nans += std::isnan(v);
    }
    EXPECT_GT(nans, 0);
    for (Isa isa : supported_isas())
      for (const ConvTactic& tactic : kernels(isa).conv_tactics) {
        if (tactic.applies && !tactic.applies(c->args)) continue;
        testing::run_tactic(tactic, *c, tactic_rng);
        EXPECT_EQ(testing::take_output(*c), want) << tactic.name << " on " << isa_name(isa) << ": " << c->name;
      }
  }
}

TEST(FloatNaN, LimitsAndExtremesKeepIt) {
  std::mt19937 rng(4);
  const int64_t count = 203;
  const std::vector<float> a = with_specials(rng, count, 3), b = with_specials(rng, count, 3);
  const auto nan_of = [](float x, float y) { return std::isnan(x) || std::isnan(y); };
  std::vector<double> relu, clip, most, least, negative;
  for (int64_t i = 0; i < count; ++i) {
    relu.push_back(limit(a[i], 0, kInf)), clip.push_back(limit(a[i], -0.5, 0.5));
    most.push_back(nan_of(a[i], b[i]) ? kNaN : std::max(a[i], b[i]));
    least.push_back(nan_of(a[i], b[i]) ? kNaN : std::min(a[i], b[i]));
    negative.push_back(a[i] >= 0 ? a[i] : 0.25 * a[i]);
  }
  for (Isa isa : supported_isas()) {
    std::vector<float> out(count);
    const auto unary = [&](UnaryOp op, float alpha, float beta) {
      kernels(isa).unary(UnaryArgs{.op = op, .in = a.data(), .out = out.data(), .alpha = alpha, .beta = beta},
                         Range{0, count});
      for (int64_t i = 0; i < count; ++i)
        EXPECT_EQ(std::isnan(apply_unary(op, a[i], alpha, beta)), std::isnan(out[i])) << a[i];
      return out;
    };
    expect_like(unary(UnaryOp::kRelu, 0, 0), relu, "Relu", isa);
    expect_like(unary(UnaryOp::kClip, -0.5f, 0.5f), clip, "Clip", isa);
    expect_like(unary(UnaryOp::kLeakyRelu, 0.25f, 0), negative, "LeakyRelu", isa);
    for (UnaryOp op : {UnaryOp::kHardSigmoid, UnaryOp::kHardSwish, UnaryOp::kSigmoid, UnaryOp::kSilu, UnaryOp::kElu,
                       UnaryOp::kTanh, UnaryOp::kSoftplus, UnaryOp::kGelu, UnaryOp::kErf}) {
      unary(op, 0.2f, 0.5f);
      for (int64_t i = 0; i < count; ++i)
        EXPECT_TRUE(!std::isnan(a[i]) || std::isnan(out[i])) << static_cast<int>(op) << " on " << isa_name(isa);
    }
    const auto binary = [&](BinaryOp op) {
      BinaryArgs args{.op = op, .a = a.data(), .b = b.data(), .out = out.data()};
      args.dims[0] = count, args.a_strides[0] = args.b_strides[0] = 1;
      kernels(isa).binary(args, Range{0, count});
      return out;
    };
    expect_like(binary(BinaryOp::kMax), most, "Max", isa);
    expect_like(binary(BinaryOp::kMin), least, "Min", isa);
  }
}

TEST(FloatNaN, PoolsReductionsAndResizesKeepIt) {
  std::mt19937 rng(5);
  const int64_t h = 6, w = 7, c = 19;
  const std::vector<float> in = with_specials(rng, h * w * c, 15);
  std::vector<double> largest, mean, whole, nearest;
  for (int64_t y = 0; y < h - 1; ++y)
    for (int64_t x = 0; x < w - 1; ++x)
      for (int64_t channel = 0; channel < c; ++channel) {
        double sum = 0, top = -kInf;
        for (int64_t i = 0; i < 4; ++i) {
          const double v = in[((y + i / 2) * w + x + i % 2) * c + channel];
          sum += v, top = std::isnan(v) || v > top ? v : top;
        }
        bool any_nan = false;
        for (int64_t i = 0; i < 4; ++i) any_nan |= std::isnan(in[((y + i / 2) * w + x + i % 2) * c + channel]);
        largest.push_back(any_nan ? kNaN : top), mean.push_back(sum / 4);
      }
  for (int64_t channel = 0; channel < c; ++channel) {
    double top = -kInf;
    bool any_nan = false;
    for (int64_t p = 0; p < h * w; ++p) {
      any_nan |= std::isnan(in[p * c + channel]);
      top = std::max<double>(top, in[p * c + channel]);
    }
    whole.push_back(any_nan ? kNaN : top);
  }
  std::vector<int32_t> rows, columns;
  for (int64_t y = 0; y < 2 * h; ++y) rows.push_back(static_cast<int32_t>(y / 2));
  for (int64_t x = 0; x < 2 * w; ++x) columns.push_back(static_cast<int32_t>(x / 2));
  for (int64_t y = 0; y < 2 * h; ++y)
    for (int64_t x = 0; x < 2 * w; ++x)
      for (int64_t channel = 0; channel < c; ++channel) nearest.push_back(in[(y / 2 * w + x / 2) * c + channel]);
  const std::vector<float> no_weight(static_cast<size_t>(2 * w), 0.0f);
  for (Isa isa : supported_isas()) {
    const KernelTable& table = kernels(isa);
    std::vector<float> out(largest.size());
    FloatPoolArgs pool{.in = in.data(),
                       .out = out.data(),
                       .in_h = h,
                       .in_w = w,
                       .c = c,
                       .out_h = h - 1,
                       .out_w = w - 1,
                       .window = {.kernel_h = 2, .kernel_w = 2}};
    table.float_pool(pool, Range{0, h - 1});
    expect_like(out, largest, "MaxPool", isa);
    pool.kind = FloatPoolKind::kAverage;
    table.float_pool(pool, Range{0, h - 1});
    expect_like(out, mean, "AveragePool", isa);
    out.resize(static_cast<size_t>(c));
    table.reduce(
        ReduceArgs{.shape = {.in = in.data(), .out = out.data(), .axis = h * w, .inner = c}, .op = ReduceOp::kMax},
        Range{0, 1});
    expect_like(out, whole, "ReduceMax", isa);
    out.resize(nearest.size());
    table.float_resize(FloatResizeArgs{.in = in.data(),
                                       .out = out.data(),
                                       .in_h = h,
                                       .in_w = w,
                                       .out_h = 2 * h,
                                       .out_w = 2 * w,
                                       .c = c,
                                       .y_low = rows.data(),
                                       .y_high = rows.data(),
                                       .x_low = columns.data(),
                                       .x_high = columns.data(),
                                       .y_weight = no_weight.data(),
                                       .x_weight = no_weight.data()},
                       Range{0, 2 * h});
    expect_like(out, nearest, "nearest Resize", isa);
  }
}

TEST(FloatNaN, QuantizersMakeTheZeroPointOfIt) {
  std::mt19937 rng(6);
  for (const int64_t c : {1, 3, 4, 16, 37})
    for (const float scale : {0.02f, 1e-20f}) {
      const int64_t w = 21;
      const std::vector<float> in = with_specials(rng, w * c, 4);
      const numerics::QuantParams params{scale, 57, 0, 255};
      for (const bool planes : {false, true})
        for (Isa isa : supported_isas()) {
          const int64_t pitch = channel_pitch(c);
          std::vector<uint8_t> out(static_cast<size_t>(w * pitch + 64));
          const QuantizeArgs a{.in = in.data(),
                               .in_strides = planes ? nchw_strides(1, w, c) : nhwc_strides(1, w, c),
                               .out = {.data = out.data(),
                                       .n = 1,
                                       .h = 1,
                                       .w = w,
                                       .c = c,
                                       .c_pitch = pitch,
                                       .row_stride = w * pitch,
                                       .image_stride = w * pitch},
                               .params = params};
          kernels(isa).quantize(a, Range{0, 1});
          for (int64_t x = 0; x < w; ++x)
            for (int64_t channel = 0; channel < c; ++channel) {
              const float v = in[planes ? channel * w + x : x * c + channel];
              const int want = std::isnan(v) ? 57 : std::isinf(v) ? (v > 0 ? 255 : 0) : numerics::quantize(v, params);
              ASSERT_EQ(out[x * pitch + channel], want) << isa_name(isa) << " of " << v;
            }
        }
    }
}

// What docs/numerics.md says of the bits of convolutions and products: products are added in one order everywhere;
// instruction sets with fused multiply-add round once where the others round twice.
TEST(FloatBits, AreTheSameAmongInstructionSetsThatRoundAlike) {
  std::mt19937 rng(7);
  for (int round = 0; round < 10; ++round) {
    Product p = random_product(rng, 1u << 31);
    const int64_t c = p.n;
    const std::vector<float> image = plain(rng, 5 * 6 * c), taps = plain(rng, 9 * c);
    std::vector<float> fused, rounded;
    for (Isa isa : supported_isas()) {
      const KernelTable& table = kernels(isa);
      std::vector<float> out(static_cast<size_t>(p.m * p.n + 5 * 6 * c));
      table.float_gemm(FloatGemmArgs{.a = p.a.data(),
                                     .weights = p.packed.data(),
                                     .c = out.data(),
                                     .m = p.m,
                                     .n = p.n,
                                     .k = p.k,
                                     .epilogue = {.bias = p.bias.data(), .residual = p.residual.data(), .lo = 0}},
                       Range{0, p.m}, Range{0, float_conv_blocks(p.geometry())});
      FloatConvArgs conv{.geometry = {.in_channels = c,
                                      .out_channels = c,
                                      .groups = c,
                                      .kernel_h = 3,
                                      .kernel_w = 3,
                                      .pad_top = 1,
                                      .pad_left = 1},
                         .in = image.data(),
                         .out = out.data() + p.m * p.n,
                         .in_h = 5,
                         .in_w = 6,
                         .out_h = 5,
                         .out_w = 6,
                         .weights = taps.data()};
      table.float_depthwise(conv, Range{0, 5});
      std::vector<float>& first = isa >= Isa::kAvx2 ? fused : rounded;
      if (first.empty()) first = out;
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(first[i])) << isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace octet::kernels

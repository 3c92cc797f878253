// Float kernels without weights, on every instruction set, against plain formulas in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "engine/kernels/kernel_table.h"

namespace octet::kernels {
namespace {

constexpr double kEps = std::numeric_limits<float>::epsilon();

int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}
std::vector<float> random_floats(std::mt19937& rng, int64_t n, float spread = 3.0f) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> v(static_cast<size_t>(n));
  for (auto& x : v) x = normal(rng);
  return v;
}

struct UnaryCase {
  UnaryOp op;
  double (*formula)(double);
  bool positive = false;
};

TEST(FloatOps, UnaryFunctions) {
  static constexpr double kAlpha = 0.3, kBeta = 0.6;
  const UnaryCase cases[] = {{UnaryOp::kIdentity, [](double x) { return x; }},
                             {UnaryOp::kRelu, [](double x) { return std::max(x, 0.0); }},
                             {UnaryOp::kClip, [](double x) { return std::clamp(x, kAlpha, kBeta); }},
                             {UnaryOp::kLeakyRelu, [](double x) { return x < 0 ? kAlpha * x : x; }},
                             {UnaryOp::kElu, [](double x) { return x < 0 ? kAlpha * (std::exp(x) - 1) : x; }},
                             {UnaryOp::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
                             {UnaryOp::kSilu, [](double x) { return x / (1 + std::exp(-x)); }},
                             {UnaryOp::kHardSigmoid, [](double x) { return std::clamp(kAlpha * x + kBeta, 0.0, 1.0); }},
                             {UnaryOp::kHardSwish, [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
                             {UnaryOp::kTanh, [](double x) { return std::tanh(x); }},
                             {UnaryOp::kSoftplus, [](double x) { return std::log(1 + std::exp(x)); }},
                             {UnaryOp::kExp, [](double x) { return std::exp(x); }},
                             {UnaryOp::kLog, [](double x) { return std::log(x); }, true},
                             {UnaryOp::kSqrt, [](double x) { return std::sqrt(x); }, true},
                             {UnaryOp::kNeg, [](double x) { return -x; }},
                             {UnaryOp::kAbs, [](double x) { return std::fabs(x); }},
                             {UnaryOp::kErf, [](double x) { return std::erf(x); }},
                             {UnaryOp::kGelu, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
                             {UnaryOp::kFloor, [](double x) { return std::floor(x); }},
                             {UnaryOp::kReciprocal, [](double x) { return 1 / x; }}};
  std::mt19937 rng(1);
  for (const UnaryCase& c : cases)
    for (Isa isa : supported_isas()) {
      std::vector<float> in = random_floats(rng, 301);
      if (c.positive)
        for (auto& x : in) x = std::fabs(x) + 0.01f;
      std::vector<float> out(in.size(), 1e30f);
      const UnaryArgs a{.op = c.op,
                        .in = in.data(),
                        .out = out.data(),
                        .alpha = static_cast<float>(kAlpha),
                        .beta = static_cast<float>(kBeta)};
      kernels(isa).unary(a, Range{0, 100});
      kernels(isa).unary(a, Range{100, 301});
      for (size_t i = 0; i < in.size(); ++i) {
        const double want = c.formula(in[i]);
        // Relative to the result and, for functions that subtract, to the argument.
        ASSERT_NEAR(out[i], want, 8 * kEps * (std::fabs(want) + std::fabs(in[i])))
            << isa_name(isa) << " op " << static_cast<int>(c.op) << " of " << in[i];
      }
    }
}

TEST(FloatOps, SigmoidAndSiluOfLargeNumbersStayFinite) {
  const float in[] = {-1e4f, -200.0f, 200.0f, 1e4f};
  for (Isa isa : supported_isas()) {
    float sigmoid[4], silu[4], softplus[4];
    kernels(isa).unary(UnaryArgs{.op = UnaryOp::kSigmoid, .in = in, .out = sigmoid}, Range{0, 4});
    kernels(isa).unary(UnaryArgs{.op = UnaryOp::kSilu, .in = in, .out = silu}, Range{0, 4});
    kernels(isa).unary(UnaryArgs{.op = UnaryOp::kSoftplus, .in = in, .out = softplus}, Range{0, 4});
    for (int i = 0; i < 4; ++i) {
      EXPECT_FLOAT_EQ(sigmoid[i], i < 2 ? 0.0f : 1.0f);
      EXPECT_NEAR(silu[i], i < 2 ? 0.0f : in[i], 1e-30);
      EXPECT_FLOAT_EQ(softplus[i], i < 2 ? 0.0f : in[i]);
    }
  }
}

TEST(FloatOps, BinaryWithBroadcasting) {
  std::mt19937 rng(2);
  const auto formula = [](BinaryOp op, double a, double b) {
    switch (op) {
      case BinaryOp::kAdd:
        return a + b;
      case BinaryOp::kSub:
        return a - b;
      case BinaryOp::kMul:
        return a * b;
      case BinaryOp::kDiv:
        return a / b;
      case BinaryOp::kMin:
        return std::min(a, b);
      case BinaryOp::kMax:
        return std::max(a, b);
      case BinaryOp::kPow:
        return std::pow(a, b);
      case BinaryOp::kPRelu:
        return a < 0 ? a * b : a;
    }
    return 0.0;
  };
  for (int i = 0; i < 64; ++i) {
    BinaryArgs a{.op = static_cast<BinaryOp>(i % 8), .rank = static_cast<int>(pick(rng, 1, 4))};
    int64_t a_size = 1, b_size = 1, size = 1;
    for (int d = a.rank - 1; d >= 0; --d) {
      a.dims[d] = pick(rng, 1, 9);
      const bool a_one = pick(rng, 0, 3) == 0, b_one = pick(rng, 0, 2) == 0;
      a.a_strides[d] = a_one ? 0 : a_size;
      a.b_strides[d] = b_one ? 0 : b_size;
      a_size *= a_one ? 1 : a.dims[d];
      b_size *= b_one ? 1 : a.dims[d];
      size *= a.dims[d];
    }
    std::vector<float> left = random_floats(rng, a_size), right = random_floats(rng, b_size);
    if (a.op == BinaryOp::kPow)
      for (auto& x : left) x = std::fabs(x) + 0.1f;
    std::vector<float> out(static_cast<size_t>(size));
    a.a = left.data();
    a.b = right.data();
    a.out = out.data();
    for (Isa isa : supported_isas()) {
      std::fill(out.begin(), out.end(), 1e30f);
      const int64_t cut = pick(rng, 0, size);
      kernels(isa).binary(a, Range{0, cut});
      kernels(isa).binary(a, Range{cut, size});
      for (int64_t e = 0; e < size; ++e) {
        int64_t rest = e, l = 0, r = 0;
        for (int d = a.rank - 1; d >= 0; --d) {
          l += rest % a.dims[d] * a.a_strides[d];
          r += rest % a.dims[d] * a.b_strides[d];
          rest /= a.dims[d];
        }
        const double x = left[static_cast<size_t>(l)], y = right[static_cast<size_t>(r)], want = formula(a.op, x, y);
        ASSERT_NEAR(out[static_cast<size_t>(e)], want, 4 * kEps * (std::fabs(want) + std::fabs(x) + std::fabs(y)));
      }
    }
  }
}

TEST(FloatOps, StridedCopyTransposesAndReverses) {
  std::mt19937 rng(3);
  for (int bytes : {1, 4, 8})
    for (Isa isa : supported_isas()) {
      // out[c][h][w reversed] = in[h][w][c]
      const int64_t h = pick(rng, 1, 5), w = pick(rng, 1, 6), c = pick(rng, 1, 7);
      std::vector<uint8_t> in(static_cast<size_t>(h * w * c * bytes)), out(in.size());
      for (auto& b : in) b = static_cast<uint8_t>(rng());
      StridedCopyArgs a{.in = in.data(), .out = out.data() + (w - 1) * bytes, .element_bytes = bytes, .rank = 3};
      a.dims = {h, w, c};
      a.in_strides = {w * c, c, 1};
      a.out_strides = {w, -1, h * w};
      kernels(isa).strided_copy(a, Range{0, 1});
      kernels(isa).strided_copy(a, Range{1, h * w});
      for (int64_t y = 0; y < h; ++y)
        for (int64_t x = 0; x < w; ++x)
          for (int64_t k = 0; k < c; ++k)
            for (int64_t b = 0; b < bytes; ++b)
              ASSERT_EQ(out[static_cast<size_t>((k * h * w + y * w + w - 1 - x) * bytes + b)],
                        in[static_cast<size_t>(((y * w + x) * c + k) * bytes + b)]);
    }
}

TEST(FloatOps, SoftmaxReduceAndArgMaxAlongAnAxis) {
  std::mt19937 rng(4);
  for (int i = 0; i < 20; ++i) {
    const int64_t outer = pick(rng, 1, 4), axis = pick(rng, 1, 30), inner = i % 2 ? 1 : pick(rng, 1, 9);
    std::vector<float> in = random_floats(rng, outer * axis * inner);
    if (i == 3)
      for (auto& x : in) x += 500.0f;  // exp would overflow without the shift
    if (i == 4) std::fill(in.begin(), in.end(), 1.0f);
    std::vector<float> soft(in.size()), log_soft(in.size()), mean(static_cast<size_t>(outer * inner)), sum(mean),
        top(mean);
    std::vector<int64_t> first(mean.size()), last(mean.size());
    for (Isa isa : supported_isas()) {
      const KernelTable& k = kernels(isa);
      const Range all{0, outer};
      const auto axis_args = [&](std::vector<float>& out) {
        return AxisArgs{in.data(), out.data(), outer, axis, inner};
      };
      k.softmax(SoftmaxArgs{axis_args(soft)}, all);
      k.softmax(SoftmaxArgs{axis_args(log_soft), true}, all);
      k.reduce(ReduceArgs{axis_args(mean), ReduceOp::kMean}, all);
      k.reduce(ReduceArgs{axis_args(sum), ReduceOp::kSum}, all);
      k.reduce(ReduceArgs{axis_args(top), ReduceOp::kMax}, all);
      k.arg_max(ArgMaxArgs{in.data(), first.data(), outer, axis, inner}, all);
      k.arg_max(ArgMaxArgs{in.data(), last.data(), outer, axis, inner, true}, all);
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t j = 0; j < inner; ++j) {
          const auto at = [&](int64_t a) { return static_cast<size_t>((o * axis + a) * inner + j); };
          const auto reduced = static_cast<size_t>(o * inner + j);
          double total = 0, magnitude = 0, exps = 0;
          int64_t best = 0, best_last = 0;
          for (int64_t a = 0; a < axis; ++a) {
            total += in[at(a)];
            magnitude += std::fabs(in[at(a)]);
            if (in[at(a)] > in[at(best)]) best = a;
            if (in[at(a)] >= in[at(best_last)]) best_last = a;
          }
          for (int64_t a = 0; a < axis; ++a) exps += std::exp(double{in[at(a)]} - in[at(best)]);
          const double tolerance = static_cast<double>(axis + 2) * kEps * magnitude;
          ASSERT_NEAR(sum[reduced], total, tolerance);
          ASSERT_NEAR(mean[reduced], total / static_cast<double>(axis), tolerance / static_cast<double>(axis) + kEps);
          ASSERT_EQ(top[reduced], in[at(best)]);
          ASSERT_EQ(first[reduced], best);
          ASSERT_EQ(last[reduced], best_last);
          for (int64_t a = 0; a < axis; ++a) {
            const double shifted = double{in[at(a)]} - in[at(best)], want = std::exp(shifted) / exps;
            ASSERT_NEAR(soft[at(a)], want, static_cast<double>(axis + 20) * kEps * want + 1e-12) << isa_name(isa);
            ASSERT_NEAR(log_soft[at(a)], shifted - std::log(exps), 40 * kEps * (std::fabs(shifted) + 1));
          }
        }
    }
  }
}

TEST(FloatOps, Pools) {
  std::mt19937 rng(5);
  for (int i = 0; i < 30; ++i) {
    FloatPoolArgs a{.kind = i % 2 ? FloatPoolKind::kMax : FloatPoolKind::kAverage,
                    .n = pick(rng, 1, 2),
                    .c = pick(rng, 1, 40),
                    .count_include_pad = i % 4 == 0};
    PoolWindow& p = a.window;
    p = {.kernel_h = pick(rng, 1, 4),
         .kernel_w = pick(rng, 1, 4),
         .stride_h = pick(rng, 1, 3),
         .stride_w = pick(rng, 1, 3)};
    p.pad_top = pick(rng, 0, p.kernel_h - 1);
    p.pad_left = pick(rng, 0, p.kernel_w - 1);
    p.pad_bottom = pick(rng, 0, p.kernel_h - 1);
    p.pad_right = pick(rng, 0, p.kernel_w - 1);
    a.in_h = p.kernel_h + pick(rng, 0, 8);
    a.in_w = p.kernel_w + pick(rng, 0, 8);
    a.out_h = (a.in_h + p.pad_top + p.pad_bottom - p.kernel_h) / p.stride_h + 1;
    a.out_w = (a.in_w + p.pad_left + p.pad_right - p.kernel_w) / p.stride_w + 1;
    const std::vector<float> in = random_floats(rng, a.n * a.in_h * a.in_w * a.c);
    std::vector<float> out(static_cast<size_t>(a.n * a.out_h * a.out_w * a.c));
    a.in = in.data();
    a.out = out.data();
    for (Isa isa : supported_isas()) {
      std::fill(out.begin(), out.end(), 1e30f);
      const int64_t cut = pick(rng, 0, a.n * a.out_h);
      kernels(isa).float_pool(a, Range{0, cut});
      kernels(isa).float_pool(a, Range{cut, a.n * a.out_h});
      for (size_t at = 0; at < out.size(); ++at) {
        const auto e = static_cast<int64_t>(at);
        const int64_t c = e % a.c, x = e / a.c % a.out_w, y = e / a.c / a.out_w % a.out_h,
                      n = e / a.c / a.out_w / a.out_h;
        double best = -1e30, sum = 0, magnitude = 0;
        int64_t count = 0;
        for (int64_t iy = y * p.stride_h - p.pad_top; iy < y * p.stride_h - p.pad_top + p.kernel_h; ++iy)
          for (int64_t ix = x * p.stride_w - p.pad_left; ix < x * p.stride_w - p.pad_left + p.kernel_w; ++ix) {
            const bool inside = iy >= 0 && iy < a.in_h && ix >= 0 && ix < a.in_w;
            count += inside || a.count_include_pad;
            if (!inside) continue;
            const double v = in[static_cast<size_t>(((n * a.in_h + iy) * a.in_w + ix) * a.c + c)];
            best = std::max(best, v);
            sum += v;
            magnitude += std::fabs(v);
          }
        if (a.kind == FloatPoolKind::kMax) {
          ASSERT_EQ(out[at], best);
        } else {
          ASSERT_NEAR(out[at], sum / static_cast<double>(count), 20 * kEps * (magnitude + 1));
        }
      }
    }
  }
}

TEST(FloatOps, ScaleShiftResizeAndLrn) {
  std::mt19937 rng(6);
  const int64_t h = 5, w = 6, c = 11;
  const std::vector<float> in = random_floats(rng, h * w * c), scale = random_floats(rng, c),
                           shift = random_floats(rng, c);
  for (Isa isa : supported_isas()) {
    std::vector<float> out(in.size());
    kernels(isa).scale_shift(ScaleShiftArgs{in.data(), out.data(), scale.data(), shift.data(), c}, Range{0, h * w});
    for (size_t i = 0; i < in.size(); ++i) {
      const double s = scale[i % c], b = shift[i % c];
      ASSERT_NEAR(out[i], in[i] * s + b, 3 * kEps * (std::fabs(in[i] * s) + std::fabs(b)));
    }
    kernels(isa).lrn(LrnArgs{in.data(), out.data(), c, 4, 0.5f, 0.75f, 2.0f}, Range{0, h * w});
    for (int64_t p = 0; p < h * w; ++p)
      for (int64_t k = 0; k < c; ++k) {
        double sum = 0;  // size 4: one channel before, two after
        for (int64_t j = std::max<int64_t>(0, k - 1); j <= std::min<int64_t>(c - 1, k + 2); ++j)
          sum += double{in[static_cast<size_t>(p * c + j)]} * in[static_cast<size_t>(p * c + j)];
        const double x = in[static_cast<size_t>(p * c + k)], want = x / std::pow(2.0 + 0.5 / 4 * sum, 0.75);
        ASSERT_NEAR(out[static_cast<size_t>(p * c + k)], want, 20 * kEps * (std::fabs(want) + kEps));
      }
    const std::vector<int32_t> y0{0, 1, 4}, y1{0, 2, 4}, x0{5, 0}, x1{5, 1};
    const std::vector<float> wy{0.0f, 0.25f, 0.0f}, wx{0.0f, 0.75f};
    std::vector<float> small(static_cast<size_t>(3 * 2 * c));
    kernels(isa).float_resize(FloatResizeArgs{in.data(), small.data(), 1, h, w, 3, 2, c, y0.data(), y1.data(),
                                              x0.data(), x1.data(), wy.data(), wx.data()},
                              Range{0, 3});
    for (int64_t y = 0; y < 3; ++y)
      for (int64_t x = 0; x < 2; ++x)
        for (int64_t k = 0; k < c; ++k) {
          const auto pixel = [&](int64_t iy, int64_t ix) {
            return double{in[static_cast<size_t>((iy * w + ix) * c + k)]};
          };
          const auto sy = static_cast<size_t>(y), sx = static_cast<size_t>(x);
          const double a = wx[sx], b = wy[sy];
          const double want = (pixel(y0[sy], x0[sx]) * (1 - a) + pixel(y0[sy], x1[sx]) * a) * (1 - b) +
                              (pixel(y1[sy], x0[sx]) * (1 - a) + pixel(y1[sy], x1[sx]) * a) * b;
          ASSERT_NEAR(small[static_cast<size_t>((y * 2 + x) * c + k)], want, 1e-5);
        }
  }
}

}  // namespace
}  // namespace octet::kernels

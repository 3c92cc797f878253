// exp, sigmoid, tanh and their kin against the C library in double, a sample of all floats; the same bits on every
// instruction set, wherever a range begins and ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/kernels/kernel_table.h"

namespace octet::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

struct FunctionCase {
  const char* name;
  UnaryOp op;
  double (*formula)(double);
  double ulps;  // what float_functions.h states
};
const FunctionCase kFunctions[] = {
    {"exp", UnaryOp::kExp, [](double x) { return std::exp(x); }, 1.0},
    {"sigmoid", UnaryOp::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 2.5},
    {"silu", UnaryOp::kSilu, [](double x) { return x / (1 + std::exp(-x)); }, 3.4},
    {"elu", UnaryOp::kElu, [](double x) { return x >= 0 ? x : std::expm1(x); }, 1.0},
    {"tanh", UnaryOp::kTanh, [](double x) { return std::tanh(x); }, 2.5},
    {"softplus", UnaryOp::kSoftplus,
     [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))) + (std::isnan(x) ? x : 0); }, 2.9},
    {"erf", UnaryOp::kErf, [](double x) { return std::erf(x); }, 1.4}};

// The distance of neighboring floats at `x`.
double ulp(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

// The bits; of NaN there are many.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

std::vector<float> run(Isa isa, UnaryOp op, const std::vector<float>& in, float alpha = 1, float beta = 0) {
  std::vector<float> out(in.size());
  kernels(isa).unary(UnaryArgs{.op = op, .in = in.data(), .out = out.data(), .alpha = alpha, .beta = beta},
                     Range{0, static_cast<int64_t>(in.size())});
  return out;
}

void expect_close(const FunctionCase& f, float in, float out, Isa isa) {
  const double want = f.formula(in);
  const auto rounded = static_cast<float>(want);
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(out)) << f.name << " of " << in << " on " << isa_name(isa);
  } else if (std::isinf(rounded)) {
    ASSERT_EQ(out, rounded) << f.name << " of " << in << " on " << isa_name(isa);
  } else {
    ASSERT_LE(std::fabs(out - want), f.ulps * ulp(want)) << f.name << " of " << in << " on " << isa_name(isa);
    ASSERT_EQ(std::signbit(out), std::signbit(want)) << f.name << " of " << in << " on " << isa_name(isa);
  }
}

TEST(FloatFunctions, OfAllSizesOfNumbers) {
  // Every exponent and sign; the step has no common factor with the size of a block of mantissas.
  std::vector<float> in;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 20011)
    in.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  // Where most arguments are.
  for (int i = -30000; i <= 30000; ++i) in.push_back(static_cast<float>(i) / 256);
  for (const FunctionCase& f : kFunctions)
    for (Isa isa : supported_isas()) {
      const std::vector<float> out = run(isa, f.op, in);
      for (size_t i = 0; i < in.size(); ++i) {
        expect_close(f, in[i], out[i], isa);
        if (HasFatalFailure()) break;
      }
    }
}

TEST(FloatFunctions, OfSpecialNumbers) {
  std::vector<float> in{0, kInf, kNaN, kLargest, kDenormal, 1e-40f, 1e-20f, 1e-7f, 0.5f, 1, 4, 16, 63.9f, 64, 64.1f};
  // The limits of exp: the largest, the smallest normal and the smallest denormal result, and their neighbors.
  for (const float limit : {88.722839f, 87.336544f, 103.27893f, 103.97208f, 89.0f, 104.0f, 127.9f, 128.0f, 1e4f})
    for (const float x : {std::nextafter(limit, 0.0f), limit, std::nextafter(limit, kInf)}) in.push_back(x);
  for (size_t i = 0, n = in.size(); i < n; ++i) in.push_back(-in[i]);
  for (const FunctionCase& f : kFunctions)
    for (Isa isa : supported_isas()) {
      const std::vector<float> out = run(isa, f.op, in);
      for (size_t i = 0; i < in.size(); ++i) expect_close(f, in[i], out[i], isa);
    }
}

// What needs no series has the bits of the definition.
TEST(FloatFunctions, SimpleOnesAreThoseOfTheDefinition) {
  std::vector<float> in{0, -0.0f, kInf, -kInf, kNaN, kLargest, -kLargest, kDenormal, -kDenormal};
  std::mt19937 rng(1);
  for (int i = 0; i < 5000; ++i) in.push_back(std::normal_distribution<float>(0, 4)(rng));
  for (const UnaryOp op :
       {UnaryOp::kIdentity, UnaryOp::kRelu, UnaryOp::kClip, UnaryOp::kLeakyRelu, UnaryOp::kHardSigmoid,
        UnaryOp::kHardSwish, UnaryOp::kNeg, UnaryOp::kAbs, UnaryOp::kReciprocal, UnaryOp::kFloor, UnaryOp::kSqrt})
    for (Isa isa : supported_isas()) {
      const std::vector<float> out = run(isa, op, in, 0.2f, 0.7f);
      for (size_t i = 0; i < in.size(); ++i) {
        const float want = apply_unary(op, in[i], 0.2f, 0.7f);
        ASSERT_TRUE(same(out[i], want)) << static_cast<int>(op) << " of " << in[i] << " on " << isa_name(isa);
      }
    }
}

// Threads cut a tensor anywhere, and a step may write over its input.
TEST(FloatFunctions, TakeAnyRangeAndWriteNothingElse) {
  std::mt19937 rng(2);
  std::vector<float> in(100);
  for (auto& x : in) x = std::normal_distribution<float>(0, 3)(rng);
  for (int op = 0; op <= static_cast<int>(UnaryOp::kReciprocal); ++op) {
    const UnaryArgs base{.op = static_cast<UnaryOp>(op), .in = in.data(), .alpha = 0.3f, .beta = 0.6f};
    const std::vector<float> whole = run(Isa::kScalar, base.op, in, base.alpha, base.beta);
    for (Isa isa : supported_isas())
      for (int64_t begin = 0; begin < 20; ++begin)
        for (int64_t end = begin; end < begin + 40; ++end) {
          // Memory of its own without an element behind the range, so that the address sanitizer sees what is read.
          std::vector<float> place(in.begin(), in.begin() + end);
          UnaryArgs a = base;
          a.in = a.out = place.data();
          kernels(isa).unary(a, Range{begin, end});
          for (int64_t i = 0; i < end; ++i) {
            const float want = i < begin ? in[i] : whole[i];
            ASSERT_TRUE(same(place[i], want))
                << op << " on " << isa_name(isa) << ", element " << i << " of " << begin << " to " << end;
          }
          std::vector<float> guarded(in.size(), 7.0f);
          a.in = in.data(), a.out = guarded.data();
          kernels(isa).unary(a, Range{begin, end});
          for (int64_t i = 0; i < static_cast<int64_t>(guarded.size()); ++i)
            ASSERT_TRUE(same(guarded[i], i < begin || i >= end ? 7.0f : whole[i])) << op << " on " << isa_name(isa);
        }
  }
}

TEST(FloatFunctions, SoftmaxHasTheSameBitsEverywhere) {
  std::mt19937 rng(3);
  for (int64_t inner = 1; inner < 40; inner += inner < 3 ? 1 : 7)
    for (int64_t axis = 1; axis < 70; ++axis)
      for (const bool logarithm : {false, true}) {
        const int64_t outer = 2, size = outer * axis * inner;
        std::vector<float> in(static_cast<size_t>(size));
        for (auto& x : in) x = std::normal_distribution<float>(0, 5)(rng);
        if (axis % 5 == 0) in[rng() % in.size()] = -kInf;
        if (axis % 7 == 0) in[rng() % in.size()] = kNaN;
        if (axis % 3 == 0) in[rng() % in.size()] -= 100;
        std::vector<float> first;
        for (Isa isa : supported_isas()) {
          std::vector<float> out(in.size()), place = in;
          kernels(isa).softmax(SoftmaxArgs{AxisArgs{in.data(), out.data(), outer, axis, inner}, logarithm},
                               Range{0, 1});
          for (int64_t i = axis * inner; i < size; ++i) ASSERT_EQ(out[i], 0);
          kernels(isa).softmax(SoftmaxArgs{AxisArgs{in.data(), out.data(), outer, axis, inner}, logarithm},
                               Range{1, 2});
          kernels(isa).softmax(SoftmaxArgs{AxisArgs{place.data(), place.data(), outer, axis, inner}, logarithm},
                               Range{0, outer});
          if (first.empty()) first = out;
          for (int64_t i = 0; i < size; ++i)
            for (const float x : {out[i], place[i]})
              ASSERT_TRUE(same(x, first[i]))
                  << isa_name(isa) << ", " << axis << " elements, " << inner << " lines, element " << i;
        }
      }
}

// The masks of attention: e^-100 is denormal, which is slow for whoever reads it.
TEST(FloatFunctions, SoftmaxMakesZerosOfDenormals) {
  const std::vector<float> in = {1, -99, 0.5f, -86.3f, -86.4f, -99, 1, 1, -99};
  for (Isa isa : supported_isas())
    for (const int64_t inner : {1, 3}) {
      std::vector<float> out(in.size());
      kernels(isa).softmax(SoftmaxArgs{AxisArgs{in.data(), out.data(), 1, 9 / inner, inner}, false}, Range{0, 1});
      for (size_t i = 0; i < in.size(); ++i) {
        if (in[i] == -99) {
          EXPECT_EQ(out[i], 0) << isa_name(isa) << ", element " << i;
        }
        if (in[i] > -80) {
          EXPECT_GT(out[i], 0.1f) << isa_name(isa) << ", element " << i;
        }
      }
    }
}

TEST(FloatFunctions, LayerNormIsRightAndHasTheSameBitsEverywhere) {
  std::mt19937 rng(6);
  for (int64_t length = 1; length < 70; ++length) {
    const int64_t lines = 3, size = lines * length;
    std::vector<float> in(static_cast<size_t>(size)), scale(static_cast<size_t>(length)), shift(scale);
    for (auto& x : in) x = std::normal_distribution<float>(3, 5)(rng);
    for (auto* list : {&scale, &shift})
      for (auto& x : *list) x = std::normal_distribution<float>(0, 1)(rng);
    if (length % 5 == 0) in[0] = kNaN;
    std::vector<float> first;
    for (Isa isa : supported_isas()) {
      std::vector<float> out(in.size()), place = in;
      LayerNormArgs a{in.data(), out.data(), scale.data(), shift.data(), length, 1e-3f};
      kernels(isa).layer_norm(a, Range{1, lines});
      for (int64_t i = 0; i < length; ++i) ASSERT_EQ(out[i], 0);
      kernels(isa).layer_norm(a, Range{0, 1});
      a.in = a.out = place.data();
      kernels(isa).layer_norm(a, Range{0, lines});
      if (first.empty()) first = out;
      for (int64_t i = 0; i < size; ++i)
        for (const float x : {out[i], place[i]})
          ASSERT_TRUE(same(x, first[i])) << isa_name(isa) << ", " << length << " elements, element " << i;
    }
    for (int64_t line = 0; line < lines; ++line) {
      double mean = 0, variance = 0;
      for (int64_t k = 0; k < length; ++k) mean += in[line * length + k] / static_cast<double>(length);
      for (int64_t k = 0; k < length; ++k)
        variance += std::pow(in[line * length + k] - mean, 2) / static_cast<double>(length);
      for (int64_t k = 0; k < length; ++k) {
        const double want = (in[line * length + k] - mean) / std::sqrt(variance + 1e-3) * scale[k] + shift[k];
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(first[line * length + k]));
        } else {
          // Of the mean by the rounding of sums of numbers up to 20, seen through 1 / deviation (up to 1 / sqrt(1e-3)).
          const double tolerance = 1e-6 * (1 + 20 / std::sqrt(variance + 1e-3)) * (std::fabs(scale[k]) + 1);
          ASSERT_NEAR(first[line * length + k], want, tolerance) << length;
        }
      }
    }
  }
}

TEST(FloatFunctions, HaveTheSameBitsEverywhere) {
  std::mt19937 rng(4);
  std::vector<float> in;
  for (int i = 0; i < 20000; ++i) in.push_back(std::bit_cast<float>(static_cast<uint32_t>(rng())));
  for (int i = 0; i < 20000; ++i) in.push_back(std::normal_distribution<float>(0, 8)(rng));
  for (int op = 0; op <= static_cast<int>(UnaryOp::kReciprocal); ++op) {
    const std::vector<float> scalar = run(Isa::kScalar, static_cast<UnaryOp>(op), in, 0.3f, 0.6f);
    for (Isa isa : supported_isas()) {
      const std::vector<float> out = run(isa, static_cast<UnaryOp>(op), in, 0.3f, 0.6f);
      for (size_t i = 0; i < in.size(); ++i)
        ASSERT_TRUE(same(out[i], scalar[i])) << op << " of " << in[i] << " on " << isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace octet::kernels

#include "quant/calibrator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "numerics/quantize.h"
#include "quant/observer.h"

namespace octet::quant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

enum class Kind { kNormal, kHalfNormal, kLaplace, kForeground, kUniform };

std::vector<float> sample(Kind kind, size_t n = 60000) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::exponential_distribution<double> exponential(1.0);
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) {
    double x = 0;
    switch (kind) {
      case Kind::kNormal:
        x = normal(random);
        break;
      case Kind::kHalfNormal:  // behind a ReLU
        x = std::max(0.0, normal(random));
        break;
      case Kind::kLaplace:
        x = exponential(random) * (i % 2 ? 1 : -1);
        break;
      case Kind::kForeground:  // a detector: much background, a few strong activations (algorithms.md, section 9)
        x = i % 2 ? 0 : 0.1 * exponential(random);
        if (i % 1000 == 0) x = 0.1 * 40 * std::exp(0.4 * normal(random));
        break;
      case Kind::kUniform:
        x = std::generate_canonical<double, 53>(random);
        break;
    }
    v[i] = static_cast<float>(x);
  }
  return v;
}

Histogram histogram_of(const std::vector<float>& values) {
  Histogram h;
  h.observe(values);
  return h;
}

// Of the values themselves, by the numerics contract. Negative codes reach -levels, as the calibrator assumes.
double true_mse(const std::vector<float>& values, float amax, int levels, double clipping_weight = 1) {
  const numerics::QuantParams p{numerics::scale_from_amax(amax, levels), 0, levels == 255 ? 0 : -levels, levels};
  double sum = 0;
  for (const float v : values)
    sum += (std::abs(v) > amax ? clipping_weight : 1) *
           std::pow(static_cast<double>(v) - numerics::fake_quantize(v, p), 2);
  return sum / static_cast<double>(values.size());
}

struct MseCase {
  const char* name;
  Kind kind;
  int levels;
};
class MseTest : public ::testing::TestWithParam<MseCase> {};

TEST_P(MseTest, IsAsGoodAsBruteForceOverTheValues) {
  const std::vector<float> values = sample(GetParam().kind);
  const Histogram h = histogram_of(values);
  const int levels = GetParam().levels;
  for (const double weight : {1.0, 20.0}) {
    const float chosen = calibrate_amax(h, levels, {.method = CalibrationMethod::kMse, .clipping_weight = weight});
    const auto error = [&](float amax) { return true_mse(values, amax, levels, weight); };
    double best = error(h.amax());
    for (int i = 1; i < 250; ++i) best = std::min(best, error(h.amax() * static_cast<float>(i) / 250));
    // Both search a grid; within 1 % of the other's optimum is the flat bottom of the curve.
    EXPECT_LE(error(chosen), 1.01 * best) << weight;
    EXPECT_LE(error(chosen), error(h.amax()) * (1 + 1e-6)) << weight;
  }
}

TEST(CalibratorTest, MseCutsOffLessTheMoreThatCounts) {
  const Histogram h = histogram_of(sample(Kind::kLaplace));
  float before = 0;
  for (const double weight : {1.0, 5.0, 20.0, 1000.0}) {
    const float amax = calibrate_amax(h, 127, {.method = CalibrationMethod::kMse, .clipping_weight = weight});
    EXPECT_GT(amax, before) << weight;
    before = amax;
  }
  EXPECT_EQ(calibrate_amax(h, 127, {.method = CalibrationMethod::kMse, .clipping_weight = 1e9}), h.amax());
}

TEST_P(MseTest, EstimatesTheErrorOfTheValues) {
  const std::vector<float> values = sample(GetParam().kind);
  const Histogram h = histogram_of(values);
  for (const float share : {1.0f, 0.7f, 0.3f}) {
    const float amax = h.amax() * share;
    const double expected = true_mse(values, amax, GetParam().levels);
    EXPECT_NEAR(mean_squared_error(h, amax, GetParam().levels), expected, 0.02 * expected) << share;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Distributions, MseTest,
    ::testing::Values(MseCase{"normal", Kind::kNormal, 127}, MseCase{"half_normal_s8", Kind::kHalfNormal, 127},
                      MseCase{"half_normal_u8", Kind::kHalfNormal, 255}, MseCase{"laplace", Kind::kLaplace, 127},
                      MseCase{"foreground", Kind::kForeground, 127}, MseCase{"uniform_u8", Kind::kUniform, 255}),
    [](const auto& info) { return info.param.name; });

TEST(CalibratorTest, MaxIsExact) {
  const std::vector<float> values = {0.1f, -3.7f, 2};
  EXPECT_EQ(calibrate_amax(histogram_of(values), 127, {.method = CalibrationMethod::kMax}), 3.7f);
}

TEST(CalibratorTest, PercentileCountsZerosUnlessTold) {
  std::vector<float> values(9000, 0.0f);
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i + 1) / 1000);
  const Histogram h = histogram_of(values);
  const double width = h.bin_width();
  // 95 % of all are the zeros and the lower half of the rest.
  EXPECT_NEAR(calibrate_amax(h, 127, {.method = CalibrationMethod::kPercentile, .percentile = 95}), 0.5, 2 * width);
  EXPECT_NEAR(calibrate_amax(h, 127, {.method = CalibrationMethod::kPercentile, .percentile = 95, .skip_zeros = true}),
              0.95, 2 * width);
  EXPECT_EQ(calibrate_amax(h, 127, {.method = CalibrationMethod::kPercentile, .percentile = 100}), 1.0f);
  EXPECT_THAT([&] { calibrate_amax(h, 127, {.method = CalibrationMethod::kPercentile, .percentile = 0}); },
              ThrowsMessage<UserError>(HasSubstr("percentile 0 is not in (0, 100]")));
}

TEST(CalibratorTest, EntropyKeepsAUniformTensorAndTrimsALongTail) {
  const CalibrationOptions entropy{.method = CalibrationMethod::kEntropy};
  const Histogram uniform = histogram_of(sample(Kind::kUniform));
  EXPECT_GT(calibrate_amax(uniform, 127, entropy), 0.97f * uniform.amax());
  const Histogram laplace = histogram_of(sample(Kind::kLaplace));
  const float amax = calibrate_amax(laplace, 127, entropy);
  EXPECT_LT(amax, 0.95f * laplace.amax());
  EXPECT_GT(amax, 0.2f * laplace.amax());
  EXPECT_LT(clipped_fraction(laplace, amax), 0.02);
}

TEST(CalibratorTest, EntropyWithItsGuardDoesNotCutOffRareObjects) {
  const std::vector<float> values = sample(Kind::kForeground);
  const Histogram h = histogram_of(values);
  const float guarded = calibrate_amax(h, 127, {.method = CalibrationMethod::kEntropy});
  EXPECT_LE(mean_squared_error(h, guarded, 127), 4 * mean_squared_error(h, h.amax(), 127));
  const float unguarded = calibrate_amax(h, 127, {.method = CalibrationMethod::kEntropy, .entropy_guard = 0});
  EXPECT_LT(unguarded, guarded);
  EXPECT_GT(mean_squared_error(h, unguarded, 127), 4 * mean_squared_error(h, h.amax(), 127));
}

TEST(CalibratorTest, EntropySurvivesGapsInTheHistogram) {
  // Few distinct values: nearly all bins are empty, also those at most thresholds.
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.insert(values.end(), {0.1f, 0.2f, 0.5f, 1.0f, -1.0f, 0.9f});
  const Histogram h = histogram_of(values);
  EXPECT_GT(calibrate_amax(h, 127, {.method = CalibrationMethod::kEntropy}), 0.89f);
  EXPECT_LE(calibrate_amax(h, 127, {.method = CalibrationMethod::kEntropy}), 1.0f);
}

TEST(CalibratorTest, EveryMethodHandlesConstantAndZeroTensors) {
  const Histogram zero = histogram_of(std::vector<float>(10, 0.0f)), constant = histogram_of({2.5f, 2.5f, 2.5f});
  for (const CalibrationMethod m : {CalibrationMethod::kMax, CalibrationMethod::kMse, CalibrationMethod::kPercentile,
                                    CalibrationMethod::kEntropy}) {
    EXPECT_EQ(calibrate_amax(zero, 127, {.method = m}), 0.0f) << schema::enum_name(m);
    EXPECT_EQ(calibrate_amax(constant, 127, {.method = m}), 2.5f) << schema::enum_name(m);
  }
}

TEST(CalibratorTest, ComparesAllMethods) {
  const std::vector<float> values = sample(Kind::kLaplace);
  const std::vector<MethodResult> rows = compare_methods(histogram_of(values), 127);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].method, "max");
  EXPECT_EQ(rows[0].clipped_fraction, 0);
  EXPECT_EQ(rows[2].method, "percentile 99.99");
  EXPECT_NEAR(rows[2].clipped_fraction, 1e-4, 5e-5);
  for (const MethodResult& r : rows) {
    EXPECT_LE(r.sqnr_db, rows[1].sqnr_db + 1e-9) << r.method;  // mse is the best by its own measure
    EXPECT_EQ(r.scale, r.amax / 127);
  }
  double power = 0;
  for (const float v : values) power += static_cast<double>(v) * v;
  power /= static_cast<double>(values.size());
  EXPECT_NEAR(rows[0].sqnr_db, 10 * std::log10(power / true_mse(values, rows[0].amax, 127)), 0.1);
}

TEST(CalibratorTest, MethodsHaveNames) {
  EXPECT_EQ(schema::parse_enum<CalibrationMethod>("calibration method", "entropy"), CalibrationMethod::kEntropy);
  EXPECT_THAT([] { schema::parse_enum<CalibrationMethod>("calibration method", "msr"); },
              ThrowsMessage<UserError>(HasSubstr("did you mean 'mse'?")));
}

TEST(CalibrationSetTest, GivesRangesByName) {
  CalibrationSet set;
  set.add("a", 127);
  set.add("b", 255);
  set.observe("a", std::vector<float>{-1, 2});
  EXPECT_THAT([&] { set.ranges(); }, ThrowsMessage<UserError>(HasSubstr("tensor 'b' was never observed")));
  set.observe("b", std::vector<float>{1, 4});
  set.observe("a", std::vector<float>{-3});
  const auto ranges = set.ranges({.method = CalibrationMethod::kMax});
  EXPECT_EQ(ranges.at("a").amax, 3);
  EXPECT_EQ(ranges.at("a").min, -3);
  EXPECT_EQ(ranges.at("a").max, 2);
  EXPECT_EQ(ranges.at("a").count, 3);
  EXPECT_EQ(ranges.at("b").amax, 4);
  ASSERT_EQ(set.compare().size(), 2u);
  EXPECT_EQ(set.compare()[1].tensor, "b");
  EXPECT_EQ(set.compare()[1].methods[0].scale, 4.0f / 255);
  set.observe("b", std::vector<float>{NAN});
  EXPECT_THAT([&] { set.ranges(); },
              ThrowsMessage<UserError>(HasSubstr("tensor 'b' held 1 NaN and 0 infinite values among 3")));
}

// m = (1 - c) m + c * that of the image, of the least and the largest value each.
TEST(CalibrationSetTest, EmaAveragesPeaksInTheOrderOfTheImages) {
  CalibrationSet set;
  set.add("a", 127);
  const std::vector<std::vector<float>> images = {{-1, 4}, {-6, 2}, {-2, 8}};
  CalibrationOptions options{.method = CalibrationMethod::kEma, .averaging_constant = 0.5};
  for (const std::vector<float>& image : images) set.observe("a", image);
  EXPECT_THAT([&] { set.ranges(options); }, ThrowsMessage<UserError>(HasSubstr("the peaks of single images")));
  for (const std::vector<float>& image : images) set.observe_peak("a", peak_of(image));
  EXPECT_EQ(set.ranges(options).at("a").amax, 5.5f);  // 4, 3, 5.5; the least are -1, -3.5, -2.75
  EXPECT_GT(set.ranges(options).at("a").clipped_fraction, 0);
  options.averaging_constant = 1;
  EXPECT_EQ(set.ranges(options).at("a").amax, 8);
  options.averaging_constant = 1e-9;
  EXPECT_NEAR(set.ranges(options).at("a").amax, 4, 1e-6);
  EXPECT_TRUE(options.need_peaks());
  EXPECT_FALSE(CalibrationOptions{}.need_peaks());
  EXPECT_TRUE((CalibrationOptions{.tensors = {{.name = "b", .method = CalibrationMethod::kEma}}}.need_peaks()));
}

TEST(CalibrationSetTest, MemoryDoesNotGrowWithImages) {
  CalibrationSet set;
  for (const char* name : {"a", "b", "c"}) set.add(name, 127);
  const std::vector<float> values = sample(Kind::kLaplace, 200);
  size_t after_hundred = 0;
  for (int image = 0; image < 5000; ++image) {
    for (const char* name : {"a", "b", "c"}) set.observe(name, values);
    if (image == 99) after_hundred = set.memory_bytes();
  }
  EXPECT_EQ(set.memory_bytes(), after_hundred);
}

TEST(Mix, KeepsThePercentileOfTheLeastError) {
  for (const Kind kind : {Kind::kNormal, Kind::kHalfNormal, Kind::kLaplace, Kind::kForeground, Kind::kUniform}) {
    const std::vector<float> values = sample(kind);
    const Histogram h = histogram_of(values);
    const double mixed = mean_squared_error(h, calibrate_amax(h, 127, {.method = CalibrationMethod::kMix}), 127);
    EXPECT_LE(mixed, mean_squared_error(h, h.amax(), 127));
    for (const double percentile : {99.9, 99.95, 99.99, 99.995, 99.999}) {
      const float amax = calibrate_amax(h, 127, {.method = CalibrationMethod::kPercentile, .percentile = percentile});
      EXPECT_LE(mixed, mean_squared_error(h, amax, 127)) << percentile;
    }
    // The search over all thresholds is at least as good.
    EXPECT_GE(mixed, mean_squared_error(
                         h, calibrate_amax(h, 127, {.method = CalibrationMethod::kMse, .clipping_weight = 1}), 127));
  }
}

TEST(TensorCalibration, IsThatOfTheFirstNameThatFits) {
  const std::vector<float> values = sample(Kind::kLaplace);
  CalibrationSet set;
  for (const char* name : {"backbone/relu", "head/relu", "head/out"}) {
    set.add(name, 127);
    set.observe(name, values);
  }
  const CalibrationOptions options = {
      .tensors = {{.name = "head/out", .method = CalibrationMethod::kMax},
                  {.name = "head/*", .method = CalibrationMethod::kPercentile, .percentile = 99}}};
  const std::map<std::string, Range> ranges = set.ranges(options);
  const Histogram h = histogram_of(values);
  EXPECT_EQ(ranges.at("backbone/relu").amax, calibrate_amax(h, 127, {}));
  EXPECT_EQ(ranges.at("head/out").amax, h.amax());
  EXPECT_EQ(ranges.at("head/relu").amax,
            calibrate_amax(h, 127, {.method = CalibrationMethod::kPercentile, .percentile = 99}));
  EXPECT_THAT(
      [&] { set.ranges({.tensors = {{.name = "heads/relu"}}}); },
      ThrowsMessage<UserError>(HasSubstr("is the name of no tensor that is quantized; did you mean 'head/relu'")));
}

}  // namespace
}  // namespace octet::quant

#include "quant/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace octet::quant {
namespace {

std::vector<float> random_values(size_t n, uint64_t seed, float outlier_every = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) {
    v[i] = std::max(normal(random), -0.5f);
    if (i % 3 == 0) v[i] = 0;
    if (outlier_every > 0 && i % static_cast<size_t>(outlier_every) == 7) v[i] *= 1000;
  }
  return v;
}

Histogram observe_in_batches(std::span<const float> values, size_t batch) {
  Histogram h;
  for (size_t i = 0; i < values.size(); i += batch) h.observe(values.subspan(i, std::min(batch, values.size() - i)));
  return h;
}

TEST(HistogramTest, DoesNotDependOnBatchSizeOrOrder) {
  std::vector<float> values = random_values(40000, 1, 5000);
  values[77] = std::numeric_limits<float>::quiet_NaN();
  values[78] = -std::numeric_limits<float>::infinity();
  const Histogram whole = observe_in_batches(values, values.size());
  for (const size_t batch : {1u, 7u, 64u, 2049u}) EXPECT_EQ(observe_in_batches(values, batch), whole) << batch;
  std::mt19937 random(3);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(observe_in_batches(values, 333), whole);
  }
  // Largest last and largest first are the extremes of growing.
  std::sort(values.begin(), values.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  EXPECT_EQ(observe_in_batches(values, 10), whole);
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(observe_in_batches(values, 10), whole);
}

TEST(HistogramTest, ComesBackFromItsBytes) {
  std::vector<float> values = random_values(1000, 5, 300);
  values[3] = std::numeric_limits<float>::infinity();
  const Histogram seen = observe_in_batches(values, 100);
  EXPECT_EQ(Histogram::of_bytes(seen.bytes()), seen);
  EXPECT_EQ(Histogram::of_bytes(Histogram().bytes()), Histogram());
  const std::string bytes = seen.bytes();
  EXPECT_THROW(Histogram::of_bytes(bytes.substr(0, bytes.size() - 1)), UserError);
  EXPECT_THROW(Histogram::of_bytes(""), UserError);
}

TEST(HistogramTest, MergingPartsIsObservingTheWhole) {
  const std::vector<float> values = random_values(10000, 2, 900);
  const std::span<const float> all(values);
  const Histogram whole = observe_in_batches(all, 10000);
  const Histogram a = observe_in_batches(all.first(10), 3), b = observe_in_batches(all.subspan(10), 500);
  Histogram ab = a, ba = b;
  ab.merge(b);
  ba.merge(a);
  EXPECT_EQ(ab, whole);
  EXPECT_EQ(ba, whole);
  Histogram empty;
  empty.merge(whole);
  EXPECT_EQ(empty, whole);
  empty.merge(Histogram());
  EXPECT_EQ(empty, whole);
}

TEST(HistogramTest, CountsEveryValueInTheBinOfItsMagnitude) {
  const std::vector<float> values = random_values(5001, 4, 100);
  Histogram h;
  h.observe(values);
  std::vector<int64_t> expected(Histogram::kBins);
  float low = values[0], high = values[0];
  int64_t zeros = 0;
  for (const float v : values) {
    low = std::min(low, v);
    high = std::max(high, v);
    if (v == 0)
      ++zeros;
    else
      expected[static_cast<size_t>(std::floor(std::fabs(static_cast<double>(v)) / h.bin_width()))]++;
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), h.bins().begin()));
  EXPECT_EQ(h.count(), 5001);
  EXPECT_EQ(h.zeros(), zeros);
  EXPECT_EQ(h.min(), low);
  EXPECT_EQ(h.max(), high);
  EXPECT_GE(h.used_bins(), Histogram::kBins / 2);
  EXPECT_LE((h.used_bins() - 1) * h.bin_width(), h.amax());
  EXPECT_GT(h.used_bins() * h.bin_width(), h.amax());
}

TEST(HistogramTest, MemoryIsTheSameForAHundredAndFiveThousandBatches) {
  Histogram h;
  size_t after_hundred = 0;
  for (int batch = 0; batch < 5000; ++batch) {
    h.observe(random_values(64, static_cast<uint64_t>(batch), batch % 50 + 8));
    if (batch == 99) after_hundred = h.memory_bytes();
  }
  EXPECT_EQ(h.count(), 5000 * 64);
  EXPECT_EQ(h.memory_bytes(), after_hundred);
  EXPECT_LT(h.memory_bytes(), 40000u);
}

TEST(HistogramTest, SeparatesWhatIsNotANumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Histogram h;
  h.observe(std::vector<float>{nan, -nan, inf, -inf, inf});
  EXPECT_EQ(h.count(), 0);
  EXPECT_EQ(h.amax(), 0);
  EXPECT_EQ(h.bin_width(), 0);
  h.observe(std::vector<float>{nan, -2, 1, 0, -0.0f});
  EXPECT_EQ(h.nans(), 3);
  EXPECT_EQ(h.infinities(), 3);
  EXPECT_EQ(h.zeros(), 2);
  EXPECT_EQ(h.count(), 4);
  EXPECT_EQ(h.min(), -2);
  EXPECT_EQ(h.max(), 1);
  EXPECT_EQ(h.amax(), 2);
}

TEST(HistogramTest, HoldsTheLargestAndTheSmallestFloats) {
  const float largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();
  Histogram h;
  h.observe(std::vector<float>{smallest});
  EXPECT_EQ(h.used_bins(), 1);
  h.observe(std::vector<float>{-largest, 1.0f});
  EXPECT_EQ(h.used_bins(), Histogram::kBins);
  EXPECT_EQ(h.bins()[0], 2);
  EXPECT_EQ(h.bins()[Histogram::kBins - 1], 1);
  EXPECT_EQ(h.amax(), largest);
}

TEST(HistogramTest, ZerosAloneNeedNoBins) {
  Histogram h;
  h.observe(std::vector<float>(100, 0.0f));
  EXPECT_EQ(h.count(), 100);
  EXPECT_EQ(h.used_bins(), 0);
  EXPECT_EQ(h.amax(), 0);
}

TEST(Histogram, ShowsMagnitudesInParts) {
  Histogram h;
  const std::vector<float> values = {0, 0.1f, -0.1f, 0.6f, 1.0f, -1.0f, 1.0f};
  h.observe(values);
  EXPECT_EQ(magnitudes(h, 2), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(magnitudes(Histogram(), 3), (std::vector<int64_t>{0, 0, 0}));
}

}  // namespace
}  // namespace octet::quant

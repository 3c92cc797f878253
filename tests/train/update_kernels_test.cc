// Every instruction set gives the same bits, and every float16 is read and written as numerics rounds it.
#include "train/update_kernels.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/cpu_features.h"
#include "ir/half.h"

namespace octet::train {
namespace {

TEST(UpdateKernels, AllInstructionSetsGiveTheSameBits) {
  std::vector<const kernels::UpdateTable*> tables = {&kernels::update_table_base()};
  if (cpu_features().avx2) tables.push_back(&kernels::update_table_avx2());
  if (cpu_features().avx512) tables.push_back(&kernels::update_table_avx512());
  const int64_t n = 1043;
  at::manual_seed(12);
  const at::Tensor weight = at::randn({n}), first = at::randn({n}), second = at::rand({n}),
                   gradient = (at::randn({n}) * 1e3).to(at::kHalf);
  for (const kernels::UpdateKind kind :
       {kernels::UpdateKind::kSgd, kernels::UpdateKind::kAdam, kernels::UpdateKind::kLamb}) {
    kernels::UpdateRule rule;
    rule.kind = kind;
    rule.gradient_factor = 1.0f / 128;
    rule.rate = rule.decay = 0.01f;
    rule.momentum = rule.beta2 = 0.9f;
    rule.gain1 = rule.gain2 = 0.1f;
    rule.eps = 1e-8f;
    std::vector<std::vector<at::Tensor>> results;
    std::vector<double> sums;
    for (const kernels::UpdateTable* table : tables) {
      std::vector<at::Tensor> t = {weight.clone(), first.clone(), second.clone(), at::zeros({n}, at::kHalf)};
      kernels::UpdateArrays a;
      a.gradient = {gradient.const_data_ptr(), kernels::Storage::kFloat16};
      a.weight = {t[0].mutable_data_ptr(), kernels::Storage::kFloat32};
      a.copy = {t[3].mutable_data_ptr(), kernels::Storage::kFloat16};
      a.first = t[1].data_ptr<float>();
      a.second = t[2].data_ptr<float>();
      if (kind == kernels::UpdateKind::kLamb) {
        const kernels::LambNorms norms = table->lamb_moments(a, rule, 3, n);
        sums.push_back(norms.update);
        table->lamb_update(a, rule, 0.02f, 3, n);
      } else {
        table->update(a, rule, 3, n);
        sums.push_back(table->square_sum(a.gradient, 0.5f, 3, n));
      }
      EXPECT_TRUE(at::equal(t[0].slice(0, 0, 3), weight.slice(0, 0, 3))) << "outside of the range";
      EXPECT_FALSE(at::equal(t[0], weight));
      results.push_back(std::move(t));
    }
    for (size_t i = 1; i < tables.size(); ++i) {
      EXPECT_EQ(sums[i], sums[0]);
      for (size_t j = 0; j < 4; ++j) EXPECT_TRUE(at::equal(results[i][j], results[0][j])) << i << ' ' << j;
    }
  }
}

TEST(UpdateKernels, ReadAndWriteEveryFloat16) {
  std::vector<uint16_t> all(65536), copy(65536);
  std::vector<float> weight(65536, 0);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  kernels::UpdateRule rule;
  rule.rate = -1;  // w = 0 + g
  kernels::UpdateArrays a;
  a.gradient = {all.data(), kernels::Storage::kFloat16};
  a.weight = {weight.data(), kernels::Storage::kFloat32};
  a.copy = {copy.data(), kernels::Storage::kFloat16};
  kernels::update_table().update(a, rule, 0, 65536);
  for (size_t i = 0; i < all.size(); ++i) {
    const float want = ir::half_to_float(all[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(weight[i]) && (copy[i] & 0x7fff) > 0x7c00) << i;
    } else {
      EXPECT_EQ(weight[i], want) << i;
      if (want == 0) continue;
      EXPECT_EQ(copy[i], all[i]);
    }
  }
  // Between two of them, and beyond the largest.
  std::vector<float> between;
  for (uint16_t h = 0; h < 0x7c00; ++h) {
    const float low = ir::half_to_float(h),
                high = h == 0x7bff ? 65536 : ir::half_to_float(static_cast<uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;
    for (const float x : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f)}) between.push_back(x);
  }
  std::vector<uint16_t> rounded(between.size());
  std::vector<float> zero(between.size(), 0);
  a.gradient = {between.data(), kernels::Storage::kFloat32};
  a.weight = {zero.data(), kernels::Storage::kFloat32};
  a.copy = {rounded.data(), kernels::Storage::kFloat16};
  kernels::update_table().update(a, rule, 0, static_cast<int64_t>(between.size()));
  for (size_t i = 0; i < between.size(); ++i) ASSERT_EQ(rounded[i], ir::float_to_half(between[i])) << between[i];
}

}  // namespace
}  // namespace octet::train

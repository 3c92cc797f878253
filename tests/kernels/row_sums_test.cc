// The mean of sums that no kernel made: an engine file may have another step's bytes where the sums of rows belong.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/kernels/kernel_table.h"
#include "numerics/quantize.h"

namespace octet::kernels {
namespace {

TEST(MeanOfSums, AnySumsWrapAroundOnEveryIsa) {
  std::mt19937 rng(31);
  constexpr int64_t kRows = 5, kChannels = 48, kPixels = 35;
  constexpr int32_t kZeroPoint = 7;
  std::vector<int32_t> sums(kRows * kChannels);
  for (int32_t& s : sums) s = static_cast<int32_t>(rng());
  MeanOfSumsArgs args{.sums = sums.data(),
                      .rows = kRows,
                      .channels = kChannels,
                      .pixels = kPixels,
                      .in_zero_point = kZeroPoint,
                      .multiplier = 1e-7f,
                      .zero_point = 100,
                      .lo = 3,
                      .hi = 250};
  for (Isa isa : supported_isas()) {
    std::vector<uint8_t> out(kChannels);
    args.out = out.data();
    kernels(isa).mean_of_sums(args);
    for (int64_t c = 0; c < kChannels; ++c) {
      uint32_t sum = 0u - kPixels * kZeroPoint;
      for (int64_t r = 0; r < kRows; ++r) sum += static_cast<uint32_t>(sums[r * kChannels + c]);
      EXPECT_EQ(out[c],
                numerics::requantize(static_cast<int32_t>(sum), args.multiplier, args.zero_point, args.lo, args.hi))
          << isa_name(isa) << " channel " << c;
    }
  }
}

}  // namespace
}  // namespace octet::kernels

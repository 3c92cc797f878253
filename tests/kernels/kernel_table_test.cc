// Which kernels a table holds, and what kernels promise about their operands.
#include "engine/kernels/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/conv_cases.h"

namespace octet::kernels {
namespace {

// Of this kind of CPU; the tables beyond repeat its kernels.
#if defined(__x86_64__)
constexpr Isa kStrongest = Isa::kAmxInt8;
#else
constexpr Isa kStrongest = Isa::kGeneric;
#endif

TEST(KernelTable, EveryEntryIsFilledAndNotStrongerThanTheTable) {
  for (Isa isa : supported_isas()) {  // what fills a table is compiled for its CPUs, too
    const KernelTable& k = kernels(isa);
    EXPECT_EQ(k.isa, isa);
    const auto check_one = [&](const auto& entry) {
      EXPECT_NE(entry.function, nullptr);
      EXPECT_LE(entry.isa, isa);
    };
    const auto check = [&](const auto&... entries) { (check_one(entries), ...); };
    check(k.conv, k.depthwise, k.max_pool, k.average_pool, k.global_average, k.add, k.mul, k.copy, k.resize_nearest,
          k.quantize, k.dequantize, k.float_conv, k.float_depthwise, k.float_conv_transpose, k.float_gemm,
          k.float_matmul, k.float_pool, k.unary, k.binary, k.strided_copy, k.softmax, k.layer_norm, k.reduce, k.arg_max,
          k.scale_shift, k.float_resize, k.lrn);
    EXPECT_EQ(k.conv.isa, std::min(isa, kStrongest)) << "every instruction set has a convolution of its own";
  }
}

// Against the rule of numerics/quantize.h, with std::fma.
TEST(KernelTable, FusesAResidualSumOnlyWhereNoCodeChanges) {
  if (!isa_supported(Isa::kAvx2)) GTEST_SKIP() << "no vector kernels on this CPU";
  const auto fuses = kernels(Isa::kAvx2).residual_sum_fuses;
  std::mt19937 rng(3);
  std::uniform_real_distribution<float> unit(0.1f, 1.2f);
  int yes = 0, no = 0;
  for (int i = 0; i < 60; ++i) {
    Epilogue e;
    e.rounds_twice = true;
    // Tenths meet at many ties, which fall to either side as the products happen to be rounded.
    const bool tenths = i % 3 == 0;
    e.mid_multiplier = tenths ? static_cast<float>(1 + rng() % 9) / 10 : unit(rng);
    e.residual_multiplier = tenths ? static_cast<float>(1 + rng() % 9) / 10 : unit(rng);
    e.mid_zero_point = static_cast<int32_t>(rng() % 256),
    e.residual.zero_point = i % 2 ? static_cast<int32_t>(rng() % 256) : 0;
    e.mid_lo = static_cast<int32_t>(rng() % 40), e.mid_hi = 255 - static_cast<int32_t>(rng() % 40);
    e.out.zero_point = i % 4 ? 0 : 128;
    bool same = true;
    for (int32_t q = e.mid_lo - e.mid_zero_point; q <= e.mid_hi - e.mid_zero_point; ++q)
      for (int32_t r = -e.residual.zero_point; r < 256 - e.residual.zero_point; ++r) {
        const float fused =
            std::fma(static_cast<float>(q), e.mid_multiplier, static_cast<float>(r) * e.residual_multiplier);
        same = same && numerics::add_quantized(q, e.mid_multiplier, r, e.residual_multiplier, e.out.zero_point, e.lo,
                                               e.hi) == numerics::quantize(fused, {1.0f, e.out.zero_point, e.lo, e.hi});
      }
    EXPECT_EQ(fuses(e), same) << e.mid_multiplier << " " << e.residual_multiplier;
    ++(same ? yes : no);
  }
  EXPECT_GT(yes, 20);
  EXPECT_GT(no, 2);
}

// Against the same rule. Where there are tables, all codes are right; and there nearly always are.
TEST(KernelTable, ResidualTablesChangeNoCode) {
  const auto make = isa_supported(Isa::kAvx512Vnni) ? kernels(Isa::kAvx512Vnni).make_residual_tables : nullptr;
  ResidualTables tables;
  if (!make || !make({.residual_multiplier = 0.5f}, &tables)) GTEST_SKIP() << "not used on this CPU";
  std::mt19937 rng(5);
  std::uniform_real_distribution<float> unit(0.1f, 1.2f);
  int made = 0;
  for (int i = 0; i < 60; ++i) {
    Epilogue e;
    e.rounds_twice = true;
    e.mid_multiplier = unit(rng), e.residual_multiplier = unit(rng);
    e.mid_zero_point = static_cast<int32_t>(rng() % 256);
    e.residual.zero_point = i % 2 ? static_cast<int32_t>(rng() % 256) : 0;
    e.mid_lo = static_cast<int32_t>(rng() % 40), e.mid_hi = 255 - static_cast<int32_t>(rng() % 40);
    e.out.zero_point = i % 4 ? 0 : 128;
    if (!make(e, &tables)) continue;
    ++made;
    for (int32_t q = e.mid_lo - e.mid_zero_point; q <= e.mid_hi - e.mid_zero_point; ++q)
      for (int32_t code = 0; code < 256; ++code) {
        const float sum =
            std::fma(static_cast<float>(q), e.mid_multiplier, tables.high[code / 16] + tables.low[code % 16]);
        ASSERT_EQ(numerics::quantize(sum, {1.0f, e.out.zero_point, e.lo, e.hi}),
                  numerics::add_quantized(q, e.mid_multiplier, code - e.residual.zero_point, e.residual_multiplier,
                                          e.out.zero_point, e.lo, e.hi))
            << e.mid_multiplier << " " << e.residual_multiplier << " " << q << " " << code;
      }
  }
  EXPECT_GE(made, 58);
}

TEST(KernelTable, ConvolutionMayOverwriteItsResidual) {
  std::mt19937 rng(1);
  for (int64_t size : {3, 7, 14, 17, 31})
    for (int64_t channels : {16, 48, 80}) {
      const testing::ConvShape shape{
          1,
          size,
          size,
          {.in_channels = 24, .out_channels = channels, .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1}};
      auto c = testing::make_conv_case(rng, shape, {.residual = true});
      const std::vector<uint8_t> want = testing::expected_output(*c);
      const std::vector<uint8_t> residual = c->residual.bytes;
      for (Isa isa : supported_isas()) {
        std::copy(residual.begin(), residual.end(), c->residual.bytes.begin());
        c->args.epilogue.residual = c->residual.view;
        c->args.epilogue.out = c->residual.view;
        c->args.epilogue.out.zero_point = c->out.view.zero_point;
        testing::run_conv(kernels(isa), *c, rng);
        // take_output reads `out`: let it look at the residual's buffer.
        const QTensor out = c->out.view;
        c->out.view = c->args.epilogue.out;
        EXPECT_EQ(testing::take_output(*c), want) << c->name << " on " << isa_name(isa);
        c->out.view = out;
      }
    }
}

}  // namespace
}  // namespace octet::kernels

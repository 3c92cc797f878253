// Which kernels a table holds, and what kernels promise about their operands.
#include "engine/kernels/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  for (Isa isa : {Isa::kScalar, Isa::kGeneric, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512Vnni, Isa::kAmxInt8}) {
    const KernelTable& k = kernels(isa);
    EXPECT_EQ(k.isa, isa);
    const auto check_one = [&](const auto& entry) {
      EXPECT_NE(entry.function, nullptr);
      EXPECT_LE(entry.isa, isa);
    };
    const auto check = [&](const auto&... entries) { (check_one(entries), ...); };
    check(k.conv, k.depthwise, k.max_pool, k.average_pool, k.global_average, k.add, k.mul, k.copy, k.resize_nearest,
          k.quantize, k.dequantize, k.float_conv, k.float_depthwise, k.float_conv_transpose, k.float_gemm,
          k.float_matmul, k.float_pool, k.unary, k.binary, k.strided_copy, k.softmax, k.reduce, k.arg_max,
          k.scale_shift, k.float_resize, k.lrn);
    EXPECT_EQ(k.conv.isa, std::min(isa, kStrongest)) << "every instruction set has a convolution of its own";
  }
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

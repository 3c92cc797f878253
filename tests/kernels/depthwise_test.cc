// Depthwise convolutions of real networks: every instruction set against the direct 64-bit formula, with the epilogues
// that kernels may treat by themselves.
#include <gtest/gtest.h>

#include "kernels/conv_cases.h"

namespace octet::kernels {
namespace {

using testing::ConvCase;
using testing::ConvShape;
using testing::ConvTail;

enum class Numbers { kAny, kRelu, kLargeMultipliers };
enum class End { kCodes, kTable, kFunction };
End random_end(std::mt19937& rng) {
  const auto pick = rng() % 6;
  return pick == 0 ? End::kTable : pick < 3 ? End::kFunction : End::kCodes;
}

std::unique_ptr<ConvCase> make_case(std::mt19937& rng, int64_t height, int64_t width, int64_t channels, int64_t kernel,
                                    int64_t stride, End end, Numbers numbers) {
  const ConvShape shape{2,
                        height,
                        width,
                        {.in_channels = channels,
                         .out_channels = channels,
                         .groups = channels,
                         .kernel_h = kernel,
                         .kernel_w = kernel,
                         .stride_h = stride,
                         .stride_w = stride,
                         .pad_top = kernel / 2,
                         .pad_left = kernel / 2},
                        true};
  auto c =
      testing::make_conv_case(rng, shape, ConvTail{.table = end == End::kTable, .function = end == End::kFunction});
  if (numbers == Numbers::kRelu) {
    c->out.view.zero_point = c->args.epilogue.out.zero_point = 0;
    if (end != End::kFunction && rng() % 2 == 0) c->args.epilogue.hi = 127;
  }
  if (numbers == Numbers::kLargeMultipliers)
    for (float& m : c->multiplier) m *= 300000.0f;
  testing::set_limits(*c);
  return c;
}

void check_on_every_isa(ConvCase& c, std::mt19937& rng) {
  const std::vector<uint8_t> want = testing::expected_output(c);
  testing::take_output(c);
  for (Isa isa : supported_isas()) {
    testing::run_conv(kernels(isa), c, rng);
    EXPECT_TRUE(testing::take_output(c) == want) << c.name << " on " << isa_name(isa);
  }
}

// Channels: whole vectors and every remainder. Widths: strips shorter than the kernel, odd, and cut in uneven pieces.
// Heights: groups of two and four output rows and every remainder, also with stride 2.
TEST(Depthwise, KernelsOfNetworksEqualTheDirectFormulaOnEveryIsa) {
  std::mt19937 rng(11);
  for (int64_t kernel : {3, 5, 7})
    for (int64_t stride : {1, 2})
      for (int64_t channels : {8, 32, 48, 64, 80, 96, 144})
        for (int64_t width : {1, 2, 3, 4, 5, 7, 9, 14, 23}) {
          const End end = random_end(rng);
          const Numbers numbers = static_cast<Numbers>(rng() % 3);
          auto c = make_case(rng, 1 + static_cast<int64_t>(rng() % 12), width, channels, kernel, stride, end, numbers);
          check_on_every_isa(*c, rng);
          if (HasFailure()) return;
        }
}

// Lines longer than what a kernel takes at once, also where it takes pieces of the line side by side.
TEST(Depthwise, LongLinesEqualTheDirectFormulaOnEveryIsa) {
  std::mt19937 rng(12);
  for (int64_t stride : {1, 2})
    for (int64_t channels : {16, 32, 64, 96})
      for (int64_t width : {63, 64, 65, 130, 301}) {
        auto c = make_case(rng, 2 + static_cast<int64_t>(rng() % 3), width * stride, channels, 3, stride,
                           random_end(rng), static_cast<Numbers>(rng() % 3));
        check_on_every_isa(*c, rng);
        if (HasFailure()) return;
      }
}

}  // namespace
}  // namespace octet::kernels

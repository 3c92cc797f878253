// What is made ready for a plan before it runs.
#include "engine/prepared_plan.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conv_chain_plan.h"

namespace octet::engine {
namespace {

// Every convolution learns where the next one's weights are, thread by thread, if they are worth fetching.
TEST(PreparedPlan, ConvolutionsKnowTheWeightsAfterThem) {
  if (!isa_supported(Isa::kAvx512Vnni)) GTEST_SKIP() << "no kernel of this CPU fetches weights ahead";
  constexpr int64_t kSize = 7, kLarge = 192, kSmall = 16;
  const auto plan = std::make_shared<const Plan>(testing::ConvChain(kLarge, kSize, "direct avx512_vnni")
                                                     .conv(kLarge, 3, 1)  // steps[1], after quantize
                                                     .conv(kLarge, 3, 1)
                                                     .depthwise(3)
                                                     .conv(kSmall, 1, 1)
                                                     .conv(kLarge, 3, 1)
                                                     .finish());
  const PreparedPlan prepared(plan, Isa::kAvx512Vnni);
  const auto steps = prepared.steps();
  for (const size_t i : {1, 2, 4, 5}) ASSERT_NE(steps[i].next, nullptr) << i;
  EXPECT_EQ(steps[3].next, nullptr);
  EXPECT_EQ(steps[2].next->of_share, nullptr);  // of the small one, beyond the depthwise step
  EXPECT_EQ(steps[5].next->of_share, nullptr);  // nothing comes after it

  ASSERT_NE(steps[2].derived, nullptr);  // where they lie now
  const std::byte *weights = steps[2].derived->data, *end = weights + steps[2].derived->bytes;
  const kernels::ReadSoon first = steps[1].next->of_share(0, 2), second = steps[1].next->of_share(1, 2);
  EXPECT_EQ(first.data, weights);
  EXPECT_GT(second.data, first.data);  // so few pixels and so many weights are shared by channels
  for (const kernels::ReadSoon& read : {first, second}) {
    EXPECT_GT(read.bytes, 0);
    EXPECT_LE(read.data + read.bytes, end);
  }
}

// Large weights that a kernel takes as they are move to memory of our own, and the fetches with them.
TEST(PreparedPlan, LargeWeightsAreCopied) {
  constexpr int64_t kSize = 3, kSmall = 32, kLarge = 1024;
  const auto plan = std::make_shared<const Plan>(
      testing::ConvChain(kSmall, kSize, "direct scalar").conv(kLarge, 1, 1).conv(kLarge, 1, 1).finish());
  const PreparedPlan prepared(plan, Isa::kScalar);
  const auto steps = prepared.steps();
  EXPECT_EQ(steps[1].derived, nullptr);
  ASSERT_NE(steps[2].derived, nullptr);
  EXPECT_EQ(prepared.derived_bytes(), kLarge * kLarge);
  const auto weights = plan->constant_bytes(plan->steps[2].constants.at("weights"), 1);
  ASSERT_EQ(steps[2].derived->bytes, static_cast<int64_t>(weights.size()));
  EXPECT_NE(steps[2].derived->data, weights.data());
  EXPECT_EQ(std::memcmp(steps[2].derived->data, weights.data(), weights.size()), 0);
  EXPECT_EQ(steps[2].first_weights(0, 1).data, steps[2].derived->data);
}

// In bands of rows all weights would be read again for every band.
TEST(PreparedPlan, LargeWeightsAreNotForBands) {
  constexpr int64_t kSize = 12, kSmall = 64, kLarge = 1536;
  const auto plan = std::make_shared<const Plan>(
      testing::ConvChain(kLarge, kSize, "direct scalar").conv(kLarge, 1, 1).conv(kSmall, 1, 1).finish());
  const PreparedPlan prepared(plan, Isa::kScalar);
  EXPECT_FALSE(prepared.steps()[1].rows.has_value());
  EXPECT_TRUE(prepared.steps()[2].rows.has_value());
}

}  // namespace
}  // namespace octet::engine

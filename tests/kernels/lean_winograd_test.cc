// The Winograd convolutions that transform their weights in every run, as the engine runs them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/conv_cases.h"
#include "support/sanitized.h"

namespace octet::kernels {
namespace {

class LeanWinograd : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!isa_supported(Isa::kAvx512Vnni)) GTEST_SKIP() << "needs AVX-512 VNNI";
    for (const ConvTactic& t : kernels(Isa::kAvx512Vnni).conv_tactics)
      if (std::string(t.name) == GetParam()) tactic = &t;
    ASSERT_NE(tactic, nullptr);
  }
  const ConvTactic* tactic = nullptr;
};

struct Memory {
  explicit Memory(int64_t bytes)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>((bytes + 127) / 64 * 64)))),
        size(static_cast<size_t>(bytes)) {
    std::memset(this->bytes.get(), 0, size);
    std::memset(this->bytes.get() + size, 0x5a, 64);
  }
  bool intact() const {
    return std::all_of(bytes.get() + size, bytes.get() + size + 64, [](std::byte b) { return b == std::byte{0x5a}; });
  }
  std::unique_ptr<std::byte, testing::ConvCase::Free> bytes;
  size_t size;
};

// Twice, because the first run of some learns about the weights: into how many parts the input channels are cut.
int32_t check(const ConvTactic& tactic, testing::ConvCase& c, int threads) {
  const std::vector<uint8_t> want = testing::expected_output(c);
  testing::take_output(c);
  std::vector<Memory> kept, scratch;
  for (int part = 0; part < threads; ++part) {
    kept.emplace_back(tactic.kept_bytes ? tactic.kept_bytes(c.args) : 0);
    scratch.emplace_back(tactic.scratch_bytes(c.args));
  }
  const Memory prepared(tactic.prepared_bytes ? tactic.prepared_bytes(c.args) : 0);
  if (tactic.prepare) {
    std::memset(prepared.bytes.get(), 0xa5, prepared.size);
    tactic.prepare(c.args, prepared.bytes.get());
    EXPECT_TRUE(prepared.intact()) << c.name;
    c.args.prepared = prepared.bytes.get();
  }
  int32_t parts = 0;
  for (int run = 0; run < 2; ++run) {
    for (int part = 0; part < threads; ++part) {
      c.args.kept = kept[part].bytes.get(), c.args.scratch = scratch[part].bytes.get();
      const ConvShare s = tactic_share(tactic, c.args, part, threads);
      tactic.run(c.args, s.rows, s.blocks);
      EXPECT_TRUE(kept[part].intact() && scratch[part].intact()) << c.name;
    }
    const int64_t weight_bytes = conv_layout(c.args.geometry, c.args.in.c_pitch).weight_bytes;
    std::memcpy(&parts, tactic.prepare ? prepared.bytes.get() + weight_bytes : kept[0].bytes.get(), sizeof parts);
    EXPECT_EQ(testing::take_output(c), want) << c.name << ", run " << run << ", " << threads << " threads";
  }
  EXPECT_GT(tactic.cost(c.args, threads), 0);
  c.args.prepared = nullptr;
  return parts;
}

// Intermediate values at the ends of their ranges.
void take_extreme_weights(testing::ConvCase& c, std::mt19937& rng) {
  const ConvGeometry& g = c.args.geometry;
  for (int8_t& w : c.weights) w = rng() % 2 ? 127 : -128;
  make_acc_init(c.weights, g.out_channels, c.bias, c.in.view.zero_point, c.acc_init);
  const auto bytes = static_cast<size_t>(conv_layout(g, c.in.view.c_pitch).weight_bytes);
  pack_conv_weights(g, c.in.view.c_pitch, c.weights, {c.packed.get(), bytes});
  testing::set_limits(c);
}

// Tiles with four and with two rows and columns, slices of one and of two chunks, several parts, several images, odd
// blocks.
TEST_P(LeanWinograd, EqualsTheDirectFormula) {
  std::mt19937 rng(41);
  const auto pick = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  constexpr int kCases = octet::testing::kSanitized ? 50 : 150;
  int whole = 0, cut = 0, cut_more = 0, sevens = 0;
  for (int i = 0; i < kCases && !HasFailure(); ++i) {
    ConvGeometry g{.in_channels = pick(1, 6) * 64, .out_channels = pick(17, 140), .kernel_h = 3, .kernel_w = 3};
    g.pad_top = pick(0, 1), g.pad_left = pick(0, 1);
    const bool seven = i % 5 == 4;
    const int64_t h = seven ? 9 - 2 * g.pad_top : pick(3, 16), w = seven ? 9 - 2 * g.pad_left : pick(3, 16);
    const auto c = testing::make_conv_case(
        rng, {seven ? 1 : pick(1, 2), h, w, g},
        {.residual = i % 4 == 1, .table = i % 4 == 2, .to_float = i % 8 == 3, .function = i % 8 == 7});
    if (i % 3 == 0) take_extreme_weights(*c, rng);
    sevens += c->args.epilogue.out.h == 7 && c->args.epilogue.out.w == 7 && c->args.epilogue.out.n == 1;
    if (!tactic->applies(c->args)) continue;
    const int32_t parts = check(*tactic, *c, pick(1, 3));
    whole += parts == 1, cut += parts == 2, cut_more += parts > 2;
  }
  EXPECT_GT(whole, kCases / 4);
  EXPECT_GT(cut, kCases / 30);
  EXPECT_GT(cut_more, kCases / 75);
  EXPECT_GT(sevens, kCases / 8);
}

// The proof of exactness needs memory for every output channel, beyond what the transformed weights take.
TEST_P(LeanWinograd, TakesMoreOutputChannelsThanTransformedWeights) {
  std::mt19937 rng(43);
  ConvGeometry g{.in_channels = 64, .out_channels = 40000, .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1};
  const auto c = testing::make_conv_case(rng, {1, 3, 3, g}, {});
  ASSERT_TRUE(tactic->applies(c->args));
  check(*tactic, *c, 1);
}

TEST_P(LeanWinograd, DeclinesWhatItCannotTake) {
  std::mt19937 rng(42);
  const auto takes = [&](int64_t size, int64_t in, int64_t out) {
    ConvGeometry g{.in_channels = in, .out_channels = out, .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1};
    return tactic->applies(testing::make_conv_case(rng, {1, size, size, g}, {})->args);
  };
  EXPECT_TRUE(takes(14, 256, 256));
  EXPECT_FALSE(takes(14, 48, 256));   // no whole chunk of input channels
  EXPECT_FALSE(takes(14, 256, 16));   // one block of output channels
  EXPECT_FALSE(takes(56, 256, 256));  // too many tiles
}

INSTANTIATE_TEST_SUITE_P(Tactics, LeanWinograd, ::testing::Values("lean_winograd", "register_winograd"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace octet::kernels

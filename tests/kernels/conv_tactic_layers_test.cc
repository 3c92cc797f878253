// Layers of real networks with every kind of epilogue: every tactic of every instruction set against the direct 64-bit
// formula, bit for bit; and the order of the tables.
#include "engine/kernels/conv_tactic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "kernels/conv_cases.h"

namespace octet::kernels {
namespace {

using testing::ConvCase;
using testing::ConvShape;
using testing::ConvTail;

// How often each tactic was met, by "ISA: name isa".
using Counts = std::map<std::string, int>;

void check_every_tactic(ConvCase& c, std::mt19937& rng, Counts& counts) {
  const std::vector<uint8_t> want = testing::expected_output(c);
  testing::take_output(c);
  for (Isa isa : supported_isas())
    for (const ConvTactic& tactic : kernels(isa).conv_tactics) {
      if (tactic.isa != isa || (tactic.applies && !tactic.applies(c.args))) continue;
      const std::string what = std::string(tactic.name) + " " + isa_name(isa);
      ++counts[what];
      testing::run_tactic(tactic, c, rng);
      ASSERT_TRUE(testing::take_output(c) == want) << what << " in " << c.name;
      for (int threads : {1, 2, 4}) {
        const double cost = tactic.cost(c.args, threads);
        ASSERT_TRUE(std::isfinite(cost) && cost > 0) << what << ": " << cost << " us for " << c.name;
      }
    }
}

// Shapes that the special tactics are for: 1x1 and 3x3 over many channels, strides, small and odd images.
TEST(ConvTacticLayers, LayersOfNetworksEqualTheDirectFormulaAndMeetEveryTactic) {
  std::mt19937 rng(22);
  Counts counts;
  const ConvTail tails[] = {{},
                            {.residual = true},
                            {.residual = true, .rounds_twice = true},
                            {.table = true},
                            {.function = true},
                            {.to_float = true},
                            {.residual = true, .to_float = true}};
  struct Layer {
    int64_t h, w, ic, oc, k, stride, n;
  };
  const Layer layers[] = {
      {14, 14, 64, 256, 1, 1, 1}, {13, 17, 96, 24, 1, 1, 2},  {7, 7, 160, 320, 1, 1, 1}, {9, 9, 256, 64, 1, 2, 1},
      {28, 28, 64, 64, 3, 1, 1},  {14, 15, 128, 96, 3, 1, 1}, {7, 7, 256, 64, 3, 1, 2},  {11, 10, 64, 128, 3, 2, 1},
      {33, 37, 3, 64, 7, 2, 1},   {32, 31, 3, 32, 3, 2, 2},   {1, 1, 512, 100, 1, 1, 1}, {1, 1, 256, 64, 1, 1, 5},
      {34, 60, 64, 64, 3, 1, 1},  {6, 5, 32, 16, 3, 1, 3},    {18, 20, 16, 48, 5, 1, 1}, {75, 14, 64, 40, 3, 2, 1},
      {29, 27, 64, 24, 5, 3, 2},  {9, 9, 64, 48, 2, 4, 1},    {5, 5, 192, 80, 3, 1, 1}};  // 7x7 outputs
  for (const Layer& l : layers)
    for (const ConvTail& tail : tails) {
      const int64_t pad = l.k / 2;
      const ConvShape shape{l.n,
                            l.h + 2 * pad,
                            l.w + 2 * pad,
                            {.in_channels = l.ic,
                             .out_channels = l.oc,
                             .kernel_h = l.k,
                             .kernel_w = l.k,
                             .stride_h = l.stride,
                             .stride_w = l.stride,
                             .pad_top = pad,
                             .pad_left = pad}};
      auto c = testing::make_conv_case(rng, shape, tail);
      check_every_tactic(*c, rng, counts);
      if (HasFatalFailure()) return;
    }
  for (Isa isa : supported_isas())
    for (const ConvTactic& tactic : kernels(isa).conv_tactics)
      EXPECT_GT(counts[std::string(tactic.name) + " " + isa_name(tactic.isa)], 0)
          << "no layer of this test is one for it";
}

TEST(ConvTacticLayers, NamesAreUniqueAndTheLastTakesEverything) {
  for (Isa isa : supported_isas()) {
    const auto& tactics = kernels(isa).conv_tactics;
    ASSERT_FALSE(tactics.empty());
    std::set<std::string> names;
    for (const ConvTactic& t : tactics) {
      EXPECT_TRUE(names.insert(std::string(t.name) + " " + isa_name(t.isa)).second) << t.name;
      EXPECT_EQ(std::string(t.name).find_first_of("/ "), std::string::npos) << t.name;
      EXPECT_LE(t.isa, isa) << t.name;
      EXPECT_EQ(t.prepared_bytes == nullptr, t.prepare == nullptr) << t.name;
      EXPECT_NE(t.run, nullptr) << t.name;
      EXPECT_NE(t.cost, nullptr) << t.name;
    }
    EXPECT_EQ(tactics.back().applies, nullptr);
    EXPECT_EQ(tactics.back().run, kernels(isa).conv.function);
  }
}

}  // namespace
}  // namespace octet::kernels

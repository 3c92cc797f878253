// Which steps run together in bands, and that every row is made. That they give the same bits is tested on random
// networks (lower_test, SameBits).
#include "engine/row_bands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "conv_chain_plan.h"
#include "engine/executor.h"

namespace octet::engine {
namespace {

using octet::testing::ConvChain;

std::vector<BandedSteps> find(const Plan& plan, const RowBandOptions& options) {
  const PreparedPlan prepared(std::make_shared<const Plan>(plan), Isa::kScalar);
  return find_banded_steps(plan, prepared.steps(), options);
}

// Float image -> codes 4 x 40 x 40 -> 32 x 40 x 40 -> 16 x 20 x 20 -> 16 x 20 x 20 -> floats.
Plan chain() {
  return ConvChain(4, 40).conv(32, 3, 1).conv(16, 3, 2).conv(16, 1, 1).finish();
}

TEST(RowBands, KeepLargeTensorsAndFreshCodesOutOfMemory) {
  // A thread's share of the tensors: 3.5, 28.2, 3.5 and 3.2 KiB.
  const auto groups = find(chain(), {.threads = 2, .large_bytes = 12 * 1024, .memory_bytes = 12 * 1024});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].first, 0u);
  EXPECT_EQ(groups[0].last, 2u);
  ASSERT_EQ(groups[0].kept.size(), 2u);
  EXPECT_LE(groups[0].memory_bytes, 12 * 1024);
  EXPECT_TRUE(find(chain(), {.threads = 2, .large_bytes = 64 * 1024, .memory_bytes = 1 << 20}).empty());
}

TEST(RowBands, AreAsSmallAsTheMemoryAsks) {
  int64_t pieces = 0;
  for (int64_t memory : {64, 16, 8, 6}) {
    const auto groups = find(chain(), {.threads = 2, .large_bytes = 12 * 1024, .memory_bytes = memory * 1024});
    ASSERT_EQ(groups.size(), 1u) << memory;
    EXPECT_LE(groups[0].memory_bytes, memory * 1024);
    EXPECT_GT(static_cast<int64_t>(groups[0].pieces[0].size()), pieces);
    pieces = static_cast<int64_t>(groups[0].pieces[0].size());
  }
  // Three rows of 42 pixels of 32 bytes are the least that a 3x3 kernel reads.
  for (const BandedSteps& group : find(chain(), {.threads = 2, .large_bytes = 12 * 1024, .memory_bytes = 3 * 42 * 32}))
    EXPECT_EQ(group.last, 1u);
}

TEST(RowBands, MakeEveryRowOfWhatLeavesTheGroupOnce) {
  for (int threads : {1, 2, 3, 7, 30}) {
    const Plan plan = chain();
    const auto groups = find(plan, {.threads = threads, .large_bytes = 0, .memory_bytes = 16 * 1024});
    ASSERT_FALSE(groups.empty()) << threads;
    const BandedSteps& group = groups[0];
    ASSERT_EQ(group.pieces.size(), static_cast<size_t>(threads));
    std::vector<int> made(plan.buffers[plan.steps[group.last].outputs[0]].h(), 0);
    for (const auto& pieces : group.pieces)
      for (const BandPiece& piece : pieces)
        if (piece.what == BandPiece::What::kRun && piece.step == group.last) {
          EXPECT_EQ(piece.kept, -1);
          for (int64_t y = piece.rows.begin; y < piece.rows.end; ++y) ++made[y];
        }
    EXPECT_EQ(made, std::vector<int>(made.size(), 1)) << threads;
  }
}

TEST(RowBands, KeepSmallerTensorsWhereMemoryTakesTheTime) {
  // Shares of 3.5 KiB of fresh codes, and of 28.2, 28.2 and 14.1 KiB around a depthwise convolution.
  const Plan plan = ConvChain(4, 40).conv(32, 3, 1).depthwise(3).conv(16, 1, 1).conv(16, 3, 1).finish();
  const RowBandOptions large{.threads = 2, .large_bytes = 64 * 1024, .memory_bytes = 1 << 20};
  EXPECT_TRUE(find(plan, large).empty());
  RowBandOptions thin = large;
  thin.thin_large_bytes = 12 * 1024, thin.thin_memory_bytes = 16 * 1024;
  const auto groups = find(plan, thin);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].first, 0u);
  EXPECT_EQ(groups[0].last, 3u);  // the last convolution reads a tensor that only convolutions know
  EXPECT_EQ(groups[0].kept.size(), 3u);
  EXPECT_LE(groups[0].memory_bytes, thin.thin_memory_bytes);
  thin.thin_memory_bytes = 1024;  // for rows of fresh codes, but not of 32 channels
  for (const BandedSteps& group : find(plan, thin)) EXPECT_EQ(group.last, 1u);
}

TEST(RowBands, KeepSmallTensorsFromOtherThreads) {
  // Threads exchange nothing between the first convolution and the last, but for the rows that both make.
  const Plan plan = ConvChain(4, 40).conv(16, 1, 1).conv(32, 1, 1).depthwise(3).conv(16, 1, 1).finish();
  RowBandOptions options{.threads = 2, .large_bytes = 1 << 20, .private_memory_bytes = 64 * 1024};
  const auto groups = find(plan, options);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].first, 2u);
  EXPECT_EQ(groups[0].last, 4u);
  EXPECT_EQ(groups[0].kept.size(), 2u);
  EXPECT_LE(groups[0].memory_bytes, options.private_memory_bytes);
  for (const auto& pieces : groups[0].pieces)
    EXPECT_EQ(std::ranges::count_if(pieces, [](const BandPiece& p) { return p.what == BandPiece::What::kRun; }), 3);
  options.private_memory_bytes = 1024;
  EXPECT_TRUE(find(plan, options).empty());
  options.private_memory_bytes = 64 * 1024, options.threads = 1;  // nobody to exchange with
  EXPECT_TRUE(find(plan, options).empty());
  // Two rows of 1024 channels from 1024 channels take longer than what they save.
  const Plan deep = ConvChain(4, 40).conv(1024, 1, 1).conv(1024, 1, 1).depthwise(3).conv(16, 1, 1).finish();
  options.private_memory_bytes = 1 << 30, options.threads = 2;
  for (const BandedSteps& group : find(deep, options)) EXPECT_NE(group.first, 2u);
}

TEST(RowBands, DoNotRepeatMuchOfTheWorkOfOtherThreads) {
  // With 20 threads each share is one or two rows, of which a kernel of 3 rows needs two more.
  EXPECT_FALSE(find(chain(), {.threads = 2, .large_bytes = 1000, .memory_bytes = 1 << 20}).empty());
  EXPECT_TRUE(find(chain(), {.threads = 20, .large_bytes = 1000, .memory_bytes = 1 << 20}).empty());
}

TEST(RowBands, EndWhereWinogradsTilesDo) {
  if (!isa_supported(Isa::kAvx2)) GTEST_SKIP() << "no Winograd";
  Plan plan = ConvChain(16, 60).conv(16, 3, 1).conv(16, 3, 1).conv(16, 3, 1).finish();
  for (Step& step : plan.steps)
    if (step.kind == "conv") step.tactic = "winograd4x4 avx2/rows";
  const PreparedPlan prepared(std::make_shared<const Plan>(plan), Isa::kAvx2);
  const auto groups =
      find_banded_steps(plan, prepared.steps(), {.threads = 2, .large_bytes = 12 * 1024, .memory_bytes = 48 * 1024});
  ASSERT_EQ(groups.size(), 1u);
  for (const auto& pieces : groups[0].pieces) {
    std::map<size_t, std::vector<kernels::Range>> rows;
    for (const BandPiece& piece : pieces)
      if (piece.what == BandPiece::What::kRun) rows[piece.step].push_back(piece.rows);
    for (const auto& [step, bands] : rows) {
      if (plan.steps[step].kind != "conv") continue;
      EXPECT_GT(bands.size(), 2u);
      // The first band has the rows about its border besides, the last what is left.
      for (size_t i = 1; i + 1 < bands.size(); ++i) EXPECT_EQ((bands[i].end - bands[i].begin) % 4, 0) << step;
      if (step == groups[0].last) {
        EXPECT_EQ((bands[0].end - bands[0].begin) % 4, 0);
      }
    }
  }
}

TEST(RowBands, HaveAnArenaWithoutTheTensorsInBands) {
  // Step by step, the tensor behind the large one may lie where the one in front of it was.
  const Plan plan = ConvChain(16, 20).conv(16, 3, 1).conv(64, 3, 1).conv(16, 3, 1).conv(16, 1, 1).finish();
  const auto groups = find(plan, {.threads = 1, .large_bytes = 24 * 1024, .memory_bytes = 1 << 20});
  ASSERT_FALSE(groups.empty());
  const BandedSteps& group = groups.back();
  EXPECT_EQ(group.first, 2u);
  EXPECT_EQ(group.last, 3u);
  const ArenaLayout layout = arena_layout(plan, groups);
  EXPECT_LT(layout.bytes, plan.arena_bytes);
  EXPECT_EQ(layout.offsets[plan.steps[2].outputs[0]], -1);
  const int read = plan.steps[2].inputs[0], written = plan.steps[3].outputs[0];
  ASSERT_GE(layout.offsets[read], 0);
  ASSERT_GE(layout.offsets[written], 0);
  EXPECT_TRUE(layout.offsets[read] + plan.buffers[read].bytes() <= layout.offsets[written] ||
              layout.offsets[written] + plan.buffers[written].bytes() <= layout.offsets[read]);
}

TEST(RowBands, AreTimedAndTracedStepByStep) {
  const auto plan = std::make_shared<const Plan>(chain());
  Executor executor(plan, {.threads = 2, .row_bands = RowBandOptions{.large_bytes = 0, .memory_bytes = 16 * 1024}});
  ASSERT_FALSE(executor.banded_steps().empty());
  std::vector<float> x(4 * 40 * 40, 0.5f), y(16 * 20 * 20);
  const float* inputs[] = {x.data()};
  float* outputs[] = {y.data()};
  executor.set_profiling(true);
  executor.set_tracing(true);
  executor.run(inputs, outputs);
  const auto& times = executor.step_nanoseconds();
  for (int64_t t : times) EXPECT_GT(t, 0);
  const auto& spans = executor.step_spans();
  ASSERT_EQ(spans.size(), 2 * plan->steps.size());
  for (size_t i = 1; i < plan->steps.size(); ++i) EXPECT_LE(spans[i - 1].end, spans[i].start);
  // All of the run is in some step or waiting: between the first start and the last end nothing is lost.
  const int64_t sum = std::accumulate(times.begin(), times.end(), executor.waiting_nanoseconds());
  EXPECT_GE(sum, spans[plan->steps.size() - 1].end - spans[0].start);
}

}  // namespace
}  // namespace octet::engine

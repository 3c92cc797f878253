// The choice of tactics: stored in the file, honored where it can be, and without influence on a single bit.
#include "engine/tactics.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine_file.h"
#include "engine/engine_test_util.h"
#include "engine/executor.h"
#include "engine/plan_json.h"
#include "engine/steps_conv.h"

namespace octet::engine {
namespace {

using octet::testing::small_plan;

std::vector<float> outputs_of(const Plan& plan, Isa isa, int threads) {
  std::vector<float> x(static_cast<size_t>(plan.buffers[plan.inputs[0]].elements()));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 29 % 200) / 100 - 1;
  std::vector<float> y(static_cast<size_t>(plan.buffers[plan.outputs[0]].elements()));
  Executor executor(std::make_shared<const Plan>(plan), {.threads = threads, .isa = isa});
  const float* in[] = {x.data()};
  float* out[] = {y.data()};
  executor.run(in, out);
  return y;
}

TEST(Tactics, EveryCandidateGivesTheSameBits) {
  const Plan plan = small_plan();
  const std::vector<float> want = outputs_of(plan, Isa::kScalar, 1);
  for (Isa isa : supported_isas())
    for (const Step& step : plan.steps) {
      if (step.kind != kConvKind) continue;
      const auto candidates = conv_candidates(plan, step, kernels::kernels(isa), 2);
      ASSERT_FALSE(candidates.empty());
      for (const auto& [name, prepared_bytes] : candidates) {
        Plan with = plan;
        for (Step& s : with.steps)
          if (s.kind == kConvKind) s.tactic = name;
        EXPECT_EQ(outputs_of(with, isa, 2), want) << name << " on " << isa_name(isa);
      }
    }
}

TEST(Tactics, TheChoiceIsStoredAndReadBack) {
  Plan plan = small_plan();
  choose_tactics_by_model(plan, {.isa = default_isa(), .threads = 2});
  const Plan read = plan_from_json(plan_to_json(plan));
  ASSERT_EQ(read.steps.size(), plan.steps.size());
  int named = 0;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    EXPECT_EQ(read.steps[i].tactic, plan.steps[i].tactic);
    named += !plan.steps[i].tactic.empty();
  }
  EXPECT_EQ(named, 1) << "the one convolution of the plan";
  // The layer list shows what was stored.
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (!plan.steps[i].tactic.empty()) {
      const std::string shown = layer_list(plan, default_isa())[i].kernel;
      EXPECT_EQ("conv " + plan.steps[i].tactic.substr(0, plan.steps[i].tactic.find('/')), shown);
    }
}

TEST(Tactics, AStoredNameThatThisIsaLacksFallsBackToTheModel) {
  Plan plan = small_plan();
  for (Step& s : plan.steps)
    if (s.kind == kConvKind) s.tactic = "tiles9x9 amx_int8/channels";
  const std::vector<float> want = outputs_of(small_plan(), Isa::kScalar, 1);
  for (Isa isa : supported_isas()) EXPECT_EQ(outputs_of(plan, isa, 2), want);
}

TEST(Tactics, TimingChoosesAmongTheCandidatesAndKeepsTheBits) {
  Plan plan = small_plan();
  const std::vector<float> want = outputs_of(plan, Isa::kScalar, 1);
  const TimedTactics timed =
      choose_tactics_by_timing(plan, {.isa = default_isa(), .threads = 2, .limit_seconds = 0.05});
  EXPECT_GT(timed.runs, 0);
  EXPECT_GT(timed.before_ms, 0);
  EXPECT_LE(timed.after_ms, timed.before_ms);
  for (const Step& s : plan.steps) {
    if (s.kind != kConvKind) continue;
    const auto candidates = conv_candidates(plan, s, kernels::kernels(default_isa()), 2);
    EXPECT_NE(std::ranges::find(candidates, s.tactic, &TacticCandidate::name), candidates.end()) << s.tactic;
  }
  EXPECT_EQ(outputs_of(plan, default_isa(), 2), want);
}

// Kernels that gain little for their memory are taken up to a share of the weights, the best of them first.
TEST(Tactics, MemoryIsSpentWhereItGainsMost) {
  const std::vector<std::vector<TacticCost>> steps{
      {{500, 0}, {325, 5}}, {{500, 0}, {100, 2.5}}, {}, {{500, 0}, {300, 5}, {450, 0.5}}, {{500, 0}, {425, 5}}};
  using Choice = std::vector<size_t>;
  // The second is worth the full price, and leaves 3.5 MiB: enough for the third kernel of the fourth only.
  EXPECT_EQ(choose_within_memory(steps, 0), (Choice{0, 1, 0, 0, 0}));
  EXPECT_EQ(choose_within_memory(steps, 7.5 / kCheapShare), (Choice{0, 1, 0, 1, 0}));
  EXPECT_EQ(choose_within_memory(steps, 100), (Choice{1, 1, 0, 1, 0}));  // the last is not worth the lower price
  // Memory to work in counts once, with the weights.
  std::vector<std::vector<TacticCost>> working = steps;
  working[1][1].working_mib = working[3][1].working_mib = 2;
  EXPECT_EQ(choose_within_memory(working, 9.4 / kCheapShare), (Choice{0, 1, 0, 0, 0}));
  EXPECT_EQ(choose_within_memory(working, 9.6 / kCheapShare), (Choice{0, 1, 0, 1, 0}));
  // Not worth leaving the first for, unless it takes less than half the time, memory included.
  EXPECT_EQ(choose_within_memory(steps, 100, 0.5), (Choice{0, 1, 0, 0, 0}));
}

}  // namespace
}  // namespace octet::engine

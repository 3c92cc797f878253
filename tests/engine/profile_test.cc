// What reports of speed are made of: costs of steps, spans of threads, the peak of the machine.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/cpu_limits.h"
#include "engine/engine_test_util.h"
#include "engine/machine_peak.h"
#include "engine/step_cost.h"

namespace octet::engine {
namespace {

TEST(StepCost, CountsProductsAndBytes) {
  const Plan plan = octet::testing::small_plan();  // x -> quantize -> 3x3 conv, 3 to 20 channels at 6x5 -> pool -> y
  ASSERT_EQ(plan.steps[1].kind, "conv");
  EXPECT_EQ(step_cost(plan, plan.steps[0]).macs, 0);
  const StepCost conv = step_cost(plan, plan.steps[1]);
  EXPECT_EQ(conv.macs, 20 * 6 * 5 * 3 * 9);
  int64_t bytes = plan.buffers[1].bytes() + plan.buffers[2].bytes();
  for (const auto& [key, constant] : plan.steps[1].constants) bytes += constant.bytes;
  EXPECT_EQ(conv.bytes, bytes);
}

TEST(StepCost, CountsGroupsProductsAndTransposedConvolutions) {
  Plan plan;
  plan.buffers = {
      {.name = "x", .shape = {2, 8, 4, 4}}, {.name = "y", .shape = {2, 12, 4, 4}}, {.name = "z", .shape = {3, 10}}};
  const auto macs = [&](const char* kind, int in, int out, std::map<std::string, int64_t> ints) {
    return step_cost(plan, {.kind = kind, .inputs = {in}, .outputs = {out}, .ints = std::move(ints)}).macs;
  };
  EXPECT_EQ(macs("float_conv", 0, 1, {{"groups", 4}, {"kernel_h", 3}, {"kernel_w", 5}}), 2 * 12 * 16 * 2 * 15);
  EXPECT_EQ(macs("depthwise", 0, 0, {{"groups", 8}, {"kernel_h", 3}, {"kernel_w", 3}}), 2 * 8 * 16 * 9);
  EXPECT_EQ(macs("float_conv_transpose", 0, 1, {{"kernel_h", 2}, {"kernel_w", 2}}), 2 * 8 * 16 * 12 * 4);
  EXPECT_EQ(macs("float_gemm", 0, 2, {{"k", 7}, {"n", 10}}), 30 * 7);
  EXPECT_EQ(macs("float_matmul", 0, 2, {{"batches", 2}, {"m", 3}, {"n", 4}, {"k", 5}}), 120);
  EXPECT_EQ(macs("no such kind", 0, 1, {}), std::nullopt);
}

TEST(Executor, TracesEveryThreadAndStep) {
  const auto plan = std::make_shared<const Plan>(octet::testing::small_plan());
  Executor executor(plan, {.threads = 2, .isa = Isa::kScalar, .row_bands = RowBandOptions{.large_bytes = 1 << 30}});
  std::vector<float> x(90), y(120);
  const float* inputs[] = {x.data()};
  float* outputs[] = {y.data()};
  executor.set_tracing(true);
  executor.run(inputs, outputs);
  const std::vector<StepSpan> spans = executor.step_spans();
  const size_t steps = plan->steps.size();
  ASSERT_EQ(spans.size(), 2 * steps);
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_GT(spans[i].start, 0);
    EXPECT_LE(spans[i].start, spans[i].end);
    // The barrier, as there are no bands: nobody starts a step before all have ended the one before.
    if (i % steps == 0) continue;
    for (size_t t = 0; t < 2; ++t) EXPECT_LE(spans[t * steps + i % steps - 1].end, spans[i].start);
  }
  executor.set_tracing(false);
  executor.run(inputs, outputs);
  EXPECT_TRUE(executor.step_spans().empty());
}

TEST(MachinePeak, EveryInstructionSetHasOne) {
  // An emulator on a busy host makes 0.06 in float (scripts/test_aarch64.sh).
  const double least = std::getenv("OCTET_TEST_EMULATED") != nullptr ? 0.01 : 0.1;
  for (Isa isa : supported_isas()) {
    const MachinePeak peak = measure_peak(isa, 1);
    EXPECT_GT(peak.int8_gmac_per_s, least) << isa_name(isa);
    EXPECT_GT(peak.float_gmac_per_s, least) << isa_name(isa);
    EXPECT_FALSE(peak.int8_instruction.empty());
  }
}

TEST(MachinePeak, PassesACacheLineToAndFro) {
  const double ns = measure_line_exchange_ns();
  if (available_cpus() < 2) {
    EXPECT_EQ(ns, 0);
  } else {
    EXPECT_GT(ns, 5);  // a store and a load that another core has to see
    EXPECT_LT(ns, 1e6);
  }
}

}  // namespace
}  // namespace octet::engine

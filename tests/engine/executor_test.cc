#include "engine/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <numeric>
#include <set>
#include <thread>

#include "base/cpu_limits.h"
#include "engine/conv_chain_plan.h"
#include "engine/engine_test_util.h"
#include "numerics/quantize.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;

// The small plan in plain integers.
std::vector<float> expected_output(const std::vector<float>& x) {
  const numerics::QuantParams in{.scale = 0.01f}, out{.scale = 0.02f};
  std::vector<float> y;
  for (int oc = 0; oc < 20; ++oc)
    for (int py = 0; py < 3; ++py)
      for (int px = 0; px < 2; ++px) {
        int best = -128;
        for (int cy = 2 * py; cy < 2 * py + 2; ++cy)
          for (int cx = 2 * px; cx < 2 * px + 2; ++cx) {
            int acc = 100;
            for (int ic = 0; ic < 3; ++ic)
              for (int ky = 0; ky < 3; ++ky)
                for (int kx = 0; kx < 3; ++kx) {
                  const int iy = cy + ky - 1, ix = cx + kx - 1;
                  if (iy < 0 || ix < 0 || iy >= 6 || ix >= 5) continue;
                  const int w = ((oc * 3 + ic) * 9 + ky * 3 + kx) * 37 % 255 - 127;
                  acc += numerics::quantize(x[(ic * 6 + iy) * 5 + ix], in) * w;
                }
            best = std::max(best, numerics::requantize(acc, 0.003f, 0, 0, 127));
          }
        y.push_back(numerics::dequantize(best, out));
      }
  return y;
}

TEST(Executor, ComputesTheSamePlanOnEveryInstructionSetAndThreadCount) {
  const auto plan = std::make_shared<const engine::Plan>(small_plan());
  engine::validate(*plan);
  const std::vector<float> expected = expected_output(ramp(90));
  EXPECT_GT(std::set<float>(expected.begin(), expected.end()).size(), 20u);
  for (Isa isa : supported_isas())
    for (int threads : {1, 2, 3, 7}) EXPECT_EQ(run(plan, {.threads = threads, .isa = isa}), expected) << isa_name(isa);
}

TEST(Executor, RunsAgainAndAgainWithTheSameBits) {
  const auto plan = std::make_shared<const engine::Plan>(small_plan());
  engine::Executor executor(plan, {.threads = 2});
  const std::vector<float> x = ramp(90);
  const std::vector<float> expected = expected_output(x);
  for (int i = 0; i < 200; ++i) {
    std::vector<float> y(120, -1);
    const float* in[] = {x.data()};
    float* out[] = {y.data()};
    executor.run(in, out);
    ASSERT_EQ(y, expected) << "run " << i;
  }
}

TEST(Executor, TwoExecutorsShareAPlan) {
  const auto plan = std::make_shared<const engine::Plan>(small_plan());
  const std::vector<float> expected = run(plan);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) wrong += run(plan, {.threads = 2}) != expected;
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Executor, DumpsCodesOfTheGraph) {
  const auto plan = std::make_shared<const engine::Plan>(small_plan());
  engine::Executor executor(plan, {.threads = 2});
  const std::vector<float> x = ramp(90);
  std::vector<float> y(120);
  const float* in[] = {x.data()};
  float* out[] = {y.data()};
  const auto dumps = executor.run_and_dump(in, out, {"q", "y"});
  ASSERT_EQ(dumps.size(), 2u);
  EXPECT_TRUE(dumps[0].is_codes);
  EXPECT_EQ(dumps[0].zero_point, 0);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(dumps[0].codes[i], numerics::quantize(x[i], {.scale = dumps[0].scale})) << i;
  EXPECT_EQ(dumps[1].values, y);
  EXPECT_THAT(error_of([&] { executor.run_and_dump(in, out, {"relu"}); }), HasSubstr("no tensor 'relu'"));
}

TEST(Executor, ProfilesEveryStep) {
  const auto plan = std::make_shared<const engine::Plan>(small_plan());
  engine::Executor executor(plan, {.threads = 2});
  const std::vector<float> x = ramp(90);
  std::vector<float> y(120);
  const float* in[] = {x.data()};
  float* out[] = {y.data()};
  executor.run(in, out);
  for (int64_t t : executor.step_nanoseconds()) EXPECT_EQ(t, 0);
  executor.set_profiling(true);
  for (int i = 0; i < 10; ++i) executor.run(in, out);
  ASSERT_EQ(executor.step_nanoseconds().size(), 4u);
  for (int64_t t : executor.step_nanoseconds()) EXPECT_GT(t, 0);
  executor.clear_profile();
  for (int64_t t : executor.step_nanoseconds()) EXPECT_EQ(t, 0);
}

// Threads that come late, by 20 ms, are no layer's time.
TEST(Executor, CountsWaitingApartFromTheSteps) {
  const auto plan = std::make_shared<const engine::Plan>(small_plan());
  const auto late = [](void*, int parts, engine::PoolFunction::Work work, void* task) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (int part = 0; part < parts; ++part) work(task, part);
  };
  engine::Executor executor(plan, {.threads = 2, .team = {.pool = {.run = late}}});
  const std::vector<float> x = ramp(90);
  std::vector<float> y(120);
  const float* in[] = {x.data()};
  float* out[] = {y.data()};
  executor.set_profiling(true);
  int64_t least = std::numeric_limits<int64_t>::max();  // a busy machine may stop a step, too
  for (int i = 0; i < 10; ++i) {
    executor.clear_profile();
    EXPECT_EQ(executor.waiting_nanoseconds(), 0);
    executor.run(in, out);
    EXPECT_GE(executor.waiting_nanoseconds(), 19'000'000);
    const auto& steps = executor.step_nanoseconds();
    least = std::min(least, std::accumulate(steps.begin(), steps.end(), int64_t{0}));
  }
  EXPECT_LT(least, 10'000'000);
}

// Parts change hands, and runs may have fewer parts after a thread has lost its CPU within one.
TEST(Executor, GivesTheSameBitsWhereOthersHaveItsCpu) {
  const auto plan =
      std::make_shared<const engine::Plan>(ConvChain(4, 40).conv(32, 3, 1).conv(16, 3, 2).conv(16, 1, 1).finish());
  const std::vector<float> x = ramp(4 * 40 * 40);
  std::vector<float> expected(16 * 20 * 20), y(expected.size());
  const float* in[] = {x.data()};
  float* out[] = {expected.data()};
  engine::Executor(plan, {.threads = 1, .isa = Isa::kScalar}).run(in, out);
  out[0] = y.data();
  std::atomic<bool> ends{false};
  const int cpu = allowed_cpus()[0];
  std::thread others([&] {
    pin_this_thread(cpu);
    while (!ends) {
    }
  });
  std::thread([&] {
    pin_this_thread(cpu);
    engine::Executor executor(plan, {.threads = 3,
                                     .isa = Isa::kScalar,
                                     .team = {.cpus = {cpu}},
                                     .row_bands = engine::RowBandOptions{.large_bytes = 0, .memory_bytes = 16 * 1024}});
    EXPECT_FALSE(executor.banded_steps().empty());
    // How often a run is shorter is the system's to decide: where the caller finds all parts unclaimed, never.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    for (int runs = 0; std::chrono::steady_clock::now() < until; ++runs) {
      std::fill(y.begin(), y.end(), -1.0f);
      executor.run(in, out);
      ASSERT_EQ(y, expected) << runs;
    }
  }).join();
  ends = true;
  others.join();
}

TEST(Executor, RefusesImpossibleOptions) {
  const auto plan = std::make_shared<const engine::Plan>(small_plan());
  EXPECT_THAT(error_of([&] { engine::Executor(plan, {.threads = -1}); }), HasSubstr("threads = -1"));
  EXPECT_THAT(error_of([&] { engine::Executor(plan, {.threads = 5000}); }), HasSubstr("1..1024"));
}

TEST(MemoryPlan, TensorsThatLiveTogetherDoNotOverlap) {
  // A chain with a long shortcut: 0 -> 1 -> 2 -> ... and buffer 1 is read again at the end.
  engine::Plan plan;
  for (int i = 0; i < 12; ++i) plan.buffers.push_back({.name = std::to_string(i), .shape = {1, 1 + i * 37 % 11 * 100}});
  plan.inputs = {0}, plan.outputs = {11};
  for (int i = 1; i < 12; ++i) {
    engine::Step step{.kind = "unary", .name = std::to_string(i), .inputs = {i - 1}, .outputs = {i}};
    if (i == 10) step.inputs.push_back(1);
    plan.steps.push_back(step);
  }
  engine::plan_memory(plan);
  const auto life = [&](int b) {
    int first = 100, last = -1;
    for (size_t s = 0; s < plan.steps.size(); ++s)
      for (const auto* list : {&plan.steps[s].inputs, &plan.steps[s].outputs})
        if (std::count(list->begin(), list->end(), b)) first = std::min<int>(first, s), last = std::max<int>(last, s);
    return std::pair(first, last);
  };
  int64_t sum = 0;
  for (int a = 1; a < 11; ++a) {
    const engine::Buffer& x = plan.buffers[a];
    EXPECT_EQ(x.offset % 64, 0);
    EXPECT_LE(x.offset + x.bytes(), plan.arena_bytes);
    sum += x.bytes();
    for (int b = a + 1; b < 11; ++b) {
      const engine::Buffer& y = plan.buffers[b];
      const auto [a_first, a_last] = life(a);
      const auto [b_first, b_last] = life(b);
      if (a_last < b_first || b_last < a_first) continue;
      EXPECT_TRUE(x.offset + x.bytes() <= y.offset || y.offset + y.bytes() <= x.offset) << a << " and " << b;
    }
  }
  EXPECT_LT(plan.arena_bytes, sum * 2 / 3) << "memory is used again";
  EXPECT_EQ(plan.buffers[0].offset, -1);
  EXPECT_EQ(plan.buffers[11].offset, -1);
}

// More buffers than are compared with one another.
TEST(MemoryPlan, OfVeryManyTensorsThoseThatLiveTogetherDoNotOverlap) {
  constexpr int kCount = 10000;
  engine::Plan plan;
  for (int i = 0; i < kCount; ++i)
    plan.buffers.push_back({.name = std::to_string(i), .shape = {1, 1 + i * 37 % 11 * 100}});
  plan.inputs = {0}, plan.outputs = {kCount - 1};
  for (int i = 1; i < kCount; ++i)  // each is read again 1 to 7 steps later
    plan.steps.push_back({.kind = "binary",
                          .name = std::to_string(i),
                          .inputs = {i - 1, std::max(0, i - 1 - i * 31 % 7)},
                          .outputs = {i}});
  engine::plan_memory(plan);
  EXPECT_LT(plan.arena_bytes, 12 * 4096) << "memory is used again";
  for (int a = 1; a < kCount - 1; ++a) {
    const engine::Buffer& x = plan.buffers[a];
    ASSERT_GE(x.offset, 0);
    ASSERT_EQ(x.offset % 64, 0);
    ASSERT_LE(x.offset + x.bytes(), plan.arena_bytes);
    int last = a + 1;
    for (int reader = a + 1; reader <= std::min(kCount - 1, a + 8); ++reader)
      if (plan.steps[reader - 1].inputs[1] == a) last = reader;
    for (int b = a + 1; b <= std::min(last, kCount - 2); ++b) {
      const engine::Buffer& y = plan.buffers[b];
      ASSERT_TRUE(x.offset + x.bytes() <= y.offset || y.offset + y.bytes() <= x.offset) << a << " and " << b;
    }
  }
}

// Threads share both by rows, so each finds its half of the second in its own cache.
TEST(MemoryPlan, ASmallTensorGetsTheMiddleOfALargerOneBeforeIt) {
  engine::Plan plan;
  for (int64_t size : {10, 800, 100, 200, 10})
    plan.buffers.push_back({.name = std::to_string(size), .shape = {1, 16 * size}});
  plan.inputs = {0}, plan.outputs = {4};
  for (int i = 1; i < 5; ++i)
    plan.steps.push_back({.kind = "unary", .name = std::to_string(i), .inputs = {i - 1}, .outputs = {i}});
  engine::plan_memory(plan);
  const auto middle = [&](int b) { return plan.buffers[b].offset + plan.buffers[b].bytes() / 2; };
  EXPECT_NEAR(static_cast<double>(middle(1)), static_cast<double>(middle(3)), 64);
}

// A network is run again and again: what the end of a run has left in a thread's cache is there for the next one.
TEST(MemoryPlan, ASmallTensorGetsTheMiddleOfALargerOneOfTheRunBefore) {
  engine::Plan plan;
  for (int64_t size : {10, 100, 200, 800, 10})
    plan.buffers.push_back({.name = std::to_string(size), .shape = {1, 16 * size}});
  plan.inputs = {0}, plan.outputs = {4};
  for (int i = 1; i < 5; ++i)
    plan.steps.push_back({.kind = "unary", .name = std::to_string(i), .inputs = {i - 1}, .outputs = {i}});
  engine::plan_memory(plan);
  const auto middle = [&](int b) { return plan.buffers[b].offset + plan.buffers[b].bytes() / 2; };
  EXPECT_NEAR(static_cast<double>(middle(1)), static_cast<double>(middle(3)), 64);
  EXPECT_EQ(plan.arena_bytes, plan.buffers[2].bytes() + plan.buffers[3].bytes());
}

}  // namespace
}  // namespace octet::testing

#include "engine/thread_team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/cpu_limits.h"
#include "engine/engine_test_util.h"

namespace octet::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(Signal, WakesASleeper) {
  // No spinning at all, so that every wait sleeps unless the post came first.
  engine::Signal ping, pong;
  std::thread other([&] {
    for (uint32_t i = 1; i <= 2000; ++i) {
      ping.wait(i, {0});
      pong.post(i);
    }
  });
  for (uint32_t i = 1; i <= 2000; ++i) {
    ping.post(i);
    pong.wait(i, {0});
  }
  other.join();
}

TEST(Signal, NumbersMayWrap) {
  engine::Signal signal;
  for (uint32_t number : {0x3fffffffu, 0x7fffffffu, 0xbfffffffu, 0xffffffffu, 0u, 1u}) {
    signal.post(number);
    signal.wait(number, {0});
    signal.wait(number - 1, {0});
  }
}

TEST(ThreadTeam, EveryThreadWorksOncePerRun) {
  for (int threads : {1, 2, 5}) {
    engine::ThreadTeam team({.threads = threads});
    std::vector<std::atomic<int>> counts(threads);
    const std::function<void(int)> work = [&](int part) { ++counts[part]; };
    for (int i = 0; i < 300; ++i) team.run(work);
    for (const auto& c : counts) EXPECT_EQ(c, 300);
  }
}

TEST(ThreadTeam, BarrierSeparatesPhases) {
  constexpr int kThreads = 3, kPhases = 200;
  engine::ThreadTeam team({.threads = kThreads});
  std::atomic<int> arrived{0}, early{0};
  const std::function<void(int)> work = [&](int part) {
    for (int phase = 0; phase < kPhases; ++phase) {
      if (part == phase % kThreads && phase % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++arrived;
      team.barrier().wait(part);
      if (arrived < (phase + 1) * kThreads) ++early;
      team.barrier().wait(part);
    }
  };
  team.run(work);
  EXPECT_EQ(early, 0);
  EXPECT_EQ(arrived, kThreads * kPhases);
}

TEST(ThreadTeam, PartsRunOnTheirCpus) {
  const std::vector<int> cpus = allowed_cpus();
  engine::ThreadTeam team({.threads = 3, .cpus = cpus});
  std::vector<std::vector<int>> seen(3);
  team.run([&](int part) { seen[part] = allowed_cpus(); });
  EXPECT_EQ(seen[0], cpus) << "the caller's thread stays as it is";
  for (int part : {1, 2}) EXPECT_EQ(seen[part], std::vector<int>{cpus[part % cpus.size()]});
  EXPECT_THAT(error_of([] { engine::ThreadTeam({.threads = 2, .cpus = {0, 8000}}); }), HasSubstr("CPU 8000"));
}

// Two pools of a caller: one part after the other, and a thread for every part.
void run_in_turn(void* calls, int parts, engine::PoolFunction::Work work, void* task) {
  ++*static_cast<int*>(calls);
  for (int part = parts - 1; part >= 0; --part) work(task, part);
}
void run_together(void* calls, int parts, engine::PoolFunction::Work work, void* task) {
  ++*static_cast<int*>(calls);
  std::vector<std::thread> threads;
  for (int part = 0; part < parts; ++part) threads.emplace_back([=] { work(task, part); });
  for (std::thread& t : threads) t.join();
}
void run_half(void*, int parts, engine::PoolFunction::Work work, void* task) {
  for (int part = 0; part < parts / 2; ++part) work(task, part);
}

TEST(ThreadTeam, UsesThePoolOfTheCaller) {
  for (bool concurrent : {false, true}) {
    int calls = 0;
    engine::ThreadTeam team(
        {.threads = 4,
         .pool = {.run = concurrent ? run_together : run_in_turn, .context = &calls, .concurrent = concurrent}});
    EXPECT_EQ(team.has_barrier(), concurrent);
    std::atomic<int> sum{0};
    team.run([&](int part) {
      sum += part;
      if (concurrent) team.barrier().wait(part);
      sum += 10;
    });
    EXPECT_EQ(sum, 46);
    EXPECT_EQ(calls, 1);
  }
  engine::ThreadTeam lazy({.threads = 4, .pool = {.run = run_half}});
  EXPECT_THAT(error_of([&] { lazy.run([](int) {}); }), HasSubstr("ran 2 of 4 parts"));
}

TEST(ThreadTeam, IdleWorkersSleep) {
  engine::ThreadTeam team({.threads = 3});
  team.run([](int) {});
  std::this_thread::sleep_for(20ms);
  const auto cpu_time = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto us = [](const timeval& t) { return t.tv_sec * 1000000 + t.tv_usec; };
    return us(usage.ru_utime) + us(usage.ru_stime);
  };
  const auto before = cpu_time();
  std::this_thread::sleep_for(100ms);
  EXPECT_LT(cpu_time() - before, 20000) << "microseconds of CPU time in 100 ms without work";
}

}  // namespace
}  // namespace octet::testing

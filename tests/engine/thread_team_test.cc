#include "engine/thread_team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpu_limits.h"
#include "base/error.h"
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

TEST(Signal, WakesEverySleeper) {
  engine::Signal start, seen[3];
  std::vector<std::thread> others;
  for (engine::Signal& mine : seen)
    others.emplace_back([&] {
      for (uint64_t i = 1; i <= 300; ++i) {
        start.wait(i, {0});
        mine.post(i);
      }
    });
  for (uint64_t i = 1; i <= 300; ++i) {
    start.post(i);
    for (engine::Signal& other : seen) other.wait(i, {0});
  }
  for (std::thread& t : others) t.join();
}

TEST(Signal, NumbersRiseBeyond32Bits) {
  engine::Signal signal;
  for (uint64_t number : {uint64_t{0x7fffffff}, uint64_t{0xffffffff}, uint64_t{1} << 32, uint64_t{1} << 40}) {
    EXPECT_FALSE(signal.look_for(number, 3));
    signal.post(number);
    signal.wait(number, {0});
    signal.wait(number - 1, {0});
    EXPECT_EQ(signal.number(), number);
  }
}

TEST(StepClaims, APartHasOneTakerPerStep) {
  constexpr int kThreads = 4;
  constexpr uint64_t kSteps = 2000;
  engine::StepClaims claims(2);
  std::vector<std::atomic<int>> takers(kSteps + 1);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (uint64_t step = 1; step <= kSteps; ++step) {
        if (claims.claim(1, step, thread)) {
          EXPECT_EQ(claims.claimant(1), thread);
          ++takers[step];
          claims.finish(1, step);
        }
        claims.wait(1, step, {1000});
      }
    });
  for (std::thread& t : threads) t.join();
  for (uint64_t step = 1; step <= kSteps; ++step) EXPECT_EQ(takers[step], 1) << step;
  EXPECT_FALSE(claims.claim(1, kSteps, 0)) << "a step that is over";
  claims.close(1, kSteps + 10);
  EXPECT_FALSE(claims.claim(1, kSteps + 10, 0));
  EXPECT_TRUE(claims.claim(1, kSteps + 11, 3));
  EXPECT_EQ(claims.claimant(1), 3);
}

TEST(ThreadTeam, DoesEveryPartOfEveryStepOnce) {
  for (int threads : {1, 2, 5}) {
    constexpr size_t kSteps = 7;
    engine::ThreadTeam team({.threads = threads});
    std::atomic<int> runs{0}, units{0}, wrong{0};
    std::vector<std::atomic<int>> counts(kSteps);  // parts in units of 1 / parts
    const engine::ThreadTeam::Work work = [&](size_t step, int part, int parts) {
      if (step == 0 && part == 0) ++runs, units = parts;
      if (part < 0 || part >= parts || parts > threads) ++wrong;
      ++counts[step];
    };
    for (int i = 0; i < 300; ++i) {
      team.run(kSteps, work);
      for (auto& c : counts) {
        EXPECT_EQ(c, units);
        c = 0;
      }
    }
    EXPECT_EQ(runs, 300);
    EXPECT_EQ(wrong, 0);
  }
}

// Steps that read what other parts of the step before have written, as layers do; more threads than CPUs, some of them
// held up now and then.
TEST(ThreadTeam, AStepSeesAllOfTheOneBefore) {
  constexpr int kThreads = 3, kRuns = 40;
  constexpr size_t kSteps = 60;
  engine::ThreadTeam team({.threads = kThreads});
  std::vector<int64_t> from(kThreads), to(kThreads);
  std::atomic<int> wrong{0};
  const engine::ThreadTeam::Work work = [&](size_t step, int part, int parts) {
    if (part == static_cast<int>(step) % kThreads && step % 20 == 7) std::this_thread::sleep_for(1ms);
    const std::vector<int64_t>& in = step % 2 == 0 ? from : to;
    for (int i = part; i < kThreads; i += parts) {
      for (int64_t v : in)
        if (v != in[0]) ++wrong;
      (step % 2 == 0 ? to : from)[i] = in[(i + 1) % kThreads] + 1;
    }
  };
  for (int i = 0; i < kRuns; ++i) team.run(kSteps, work);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(from, std::vector<int64_t>(kThreads, kRuns * static_cast<int64_t>(kSteps)));
}

#if defined(__linux__)
// A worker that the system does not let run: it is on the caller's CPU, which the caller keeps, and the other is the
// last that the system thinks of.
TEST(ThreadTeam, TakesThePartsOfAThreadThatDoesNotCome) {
  const int cpu = allowed_cpus()[0];
  std::thread([cpu] {
    ASSERT_TRUE(pin_this_thread(cpu));
    engine::ThreadTeam team({.threads = 2, .cpus = {cpu}});
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> is_idle{false};
    for (int i = 0; i < 1000 && !is_idle; ++i)
      team.run(1, [&](size_t, int, int) {
        if (std::this_thread::get_id() == caller) return std::this_thread::sleep_for(1ms);
        const sched_param none{};
        is_idle = ::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &none) == 0;
      });
    if (!is_idle) GTEST_SKIP() << "there is no SCHED_IDLE";
    std::atomic<int> by_caller{0}, by_worker{0};
    const engine::ThreadTeam::Work work = [&](size_t, int, int) {
      ++(std::this_thread::get_id() == caller ? by_caller : by_worker);
    };
    for (int i = 0; i < 200; ++i) team.run(10, work);
    EXPECT_GE(by_caller + by_worker, 2000);
    EXPECT_LT(by_worker, 200);
  }).join();
}

// The same in the middle of a part, which nobody can take over: the next runs do without the worker, and after a while
// it is back.
TEST(ThreadTeam, GivesAThreadThatLostItsCpuARest) {
  engine::ThreadTeam team({.threads = 2});
  std::atomic<bool> hold{false};
  std::atomic<int> most{0};
  const std::thread::id caller = std::this_thread::get_id();
  const engine::ThreadTeam::Work work = [&](size_t, int, int parts) {
    most = parts;
    if (!hold) return;
    if (std::this_thread::get_id() == caller)
      std::this_thread::sleep_for(1ms);  // so that the worker begins
    else if (hold.exchange(false))
      std::this_thread::sleep_for(100ms);
  };
  const auto parts_of_a_run = [&] {
    team.run(1, work);
    return most.load();
  };
  const auto comes_to = [&](int parts) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (parts_of_a_run() != parts && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    return most == parts;
  };
  int parts = 2;
  // This thread may lose its CPU for as long as the rest takes.
  for (int attempt = 0; attempt < 5 && parts == 2; ++attempt) {
    ASSERT_TRUE(comes_to(2));
    hold = true;
    for (int i = 0; i < 1000 && hold; ++i) team.run(1, work);
    ASSERT_FALSE(hold) << "the worker never came";
    parts = parts_of_a_run();
  }
  EXPECT_EQ(parts, 1);
  EXPECT_TRUE(comes_to(2)) << "after its rest";
}

TEST(LateThreads, TellsALostCpuFromMoreToDo) {
  std::atomic<bool> sleeps{false}, ends{false};
  std::thread other([&] {
    while (!ends)
      if (sleeps) std::this_thread::sleep_for(5ms);
  });
  engine::LateThreads late(2);
  late.introduce(1, other);
  const auto rests_after = [&](std::chrono::milliseconds wait) {
    const engine::LateThreads::Watch watch = late.watch(1);
    std::this_thread::sleep_for(wait);
    late.judge(watch, 0);
    return late.rests(1);
  };
  // On a busy machine it may really lose its CPU.
  bool worked = false;
  for (int i = 0; i < 100 && !worked; ++i) {
    worked = !rests_after(1ms);
    for (; late.any(); late.wake_rested()) std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(worked);
  sleeps = true;
  std::this_thread::sleep_for(10ms);
  // From before the wait on: between its end and the next line this thread may lose its CPU, and the rest goes on.
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(rests_after(20ms));
  EXPECT_TRUE(late.any());
  EXPECT_FALSE(late.rests(0));
  for (; late.any(); late.wake_rested()) std::this_thread::sleep_for(1ms);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms + 39ms) << "twice as long as others waited";
  const auto again = std::chrono::steady_clock::now();
  EXPECT_TRUE(rests_after(1ms));
  for (; late.any(); late.wake_rested()) std::this_thread::sleep_for(1ms);
  EXPECT_GE(std::chrono::steady_clock::now() - again, 1ms + 79ms) << "twice the rest before";
  EXPECT_LT(late.watch(0).thread, 0) << "never introduced";
  ends = true;
  other.join();
}
#endif

TEST(ThreadTeam, HandsOnWhatWorkThrows) {
  for (int threads : {1, 3}) {
    engine::ThreadTeam team({.threads = threads});
    for (int bad = 0; bad < threads; ++bad) {
      const engine::ThreadTeam::Work work = [&](size_t step, int part, int parts) {
        if (step == 1 && part == std::min(bad, parts - 1)) fail("a part broke");
      };
      EXPECT_THAT(error_of([&] { team.run(3, work); }), HasSubstr("a part broke"));
      std::atomic<int> done{0};
      team.run(2, [&](size_t, int, int) { ++done; });
      EXPECT_GE(done, 2) << "the team works on";
    }
  }
}

TEST(ThreadTeam, MayWorkWithinAnotherButNotWithinItself) {
  engine::ThreadTeam outer({.threads = 2});
  std::vector<std::unique_ptr<engine::ThreadTeam>> inner;
  for (int i = 0; i < 2; ++i) inner.push_back(std::make_unique<engine::ThreadTeam>(engine::TeamOptions{.threads = 2}));
  std::atomic<int> quarters{0};
  for (int i = 0; i < 50; ++i)
    outer.run(3, [&](size_t, int part, int parts) {
      inner[part]->run(4, [&](size_t, int, int inner_parts) { quarters += 4 / parts / inner_parts; });
    });
  EXPECT_EQ(quarters, 50 * 3 * 4 * 4);
  EXPECT_THROW(outer.run(1, [&](size_t, int, int) { outer.run(1, [](size_t, int, int) {}); }), InternalError);
}

TEST(ThreadTeam, ThreadsRunOnTheirCpus) {
  const std::vector<int> cpus = allowed_cpus();
  const std::thread::id caller = std::this_thread::get_id();
  engine::ThreadTeam team({.threads = 3, .cpus = cpus});
  std::mutex mutex;
  std::map<std::thread::id, std::vector<int>> seen;
  for (int i = 0; i < 1000 && seen.size() < 3; ++i)
    team.run(1, [&](size_t, int, int) {
      if (std::this_thread::get_id() == caller) std::this_thread::sleep_for(1ms);  // so that the others come
      const std::lock_guard lock(mutex);
      seen[std::this_thread::get_id()] = allowed_cpus();
    });
  ASSERT_GT(seen.size(), 1u);
  for (const auto& [thread, own] : seen) {
    if (thread == caller) {
      EXPECT_EQ(own, cpus) << "the caller's thread stays as it is";
      continue;
    }
    ASSERT_EQ(own.size(), 1u);
    EXPECT_TRUE(own[0] == cpus[1 % cpus.size()] || own[0] == cpus[2 % cpus.size()]) << own[0];
  }
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
  for (auto* run : {run_together, run_in_turn}) {
    int calls = 0;
    engine::ThreadTeam team({.threads = 4, .pool = {.run = run, .context = &calls}});
    std::vector<std::atomic<int>> counts(3);
    for (int i = 0; i < 20; ++i) team.run(3, [&](size_t step, int part, int) { counts[step] += 1 + part; });
    for (const auto& c : counts) EXPECT_EQ(c, 20 * 10);
    EXPECT_EQ(calls, 20) << "one call for all steps";
  }
  engine::ThreadTeam lazy({.threads = 4, .pool = {.run = run_half}});
  EXPECT_THAT(error_of([&] { lazy.run(1, [](size_t, int, int) {}); }), HasSubstr("ran 2 of 4 parts"));
}

TEST(ThreadTeam, IdleWorkersSleep) {
  engine::ThreadTeam team({.threads = 3});
  team.run(1, [](size_t, int, int) {});
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

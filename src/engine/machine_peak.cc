#include "engine/machine_peak.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "base/cpu_limits.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/peak.h"

namespace octet::engine {
namespace {

double thread_seconds() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Best of several windows of this thread, in 1e9 multiply-accumulates a second.
double peak_of_this_thread(const kernels::PeakLoop& loop) {
  constexpr int kWindows = 6;
  constexpr double kWindowSeconds = 5e-3;
  int64_t iterations = 1000;
  double best = 0;
  for (int window = 0; window < kWindows;) {
    const double start = thread_seconds();
    loop.run(iterations);
    const double seconds = std::max(thread_seconds() - start, 1e-9);
    if (seconds < kWindowSeconds / 2) {
      iterations *= 2;
      continue;
    }
    best = std::max(best, 1e-9 * static_cast<double>(loop.macs * iterations) / seconds);
    ++window;
  }
  return best;
}

double peak_of_threads(const kernels::PeakLoop& loop, int threads) {
  std::vector<double> rates(static_cast<size_t>(threads));
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back([&, t] { rates[static_cast<size_t>(t)] = peak_of_this_thread(loop); });
  rates[0] = peak_of_this_thread(loop);
  for (std::thread& t : others) t.join();
  double sum = 0;
  for (double rate : rates) sum += rate;
  return sum;
}

struct alignas(64) Line {
  std::atomic<int> turn{0};

  // Where another process has the other thread's CPU, this one's must not be spent on looking.
  void wait(int number) const {
    constexpr int kLooks = 20000;
    for (int looks = 0; turn.load(std::memory_order_acquire) < number; ++looks)
      if (looks > kLooks) std::this_thread::yield();
  }
};

}  // namespace

MachinePeak measure_peak(Isa isa, int threads) {
  kernels::kernels(isa);  // asks the operating system for the AMX tiles
  const kernels::PeakLoop int8 = kernels::int8_peak_loop(isa), floats = kernels::float_peak_loop(isa);
  return {.int8_gmac_per_s = peak_of_threads(int8, threads),
          .float_gmac_per_s = peak_of_threads(floats, threads),
          .int8_instruction = int8.instruction,
          .float_instruction = floats.instruction};
}

double measure_line_exchange_ns() {
  if (available_cpus() < 2) return 0;
  constexpr int kBatches = 20, kExchanges = 500;  // the best batch counts: others were interrupted
  Line line;
  std::thread other([&line] {
    for (int i = 0; i < kBatches * kExchanges; ++i) {
      line.wait(2 * i + 1);
      line.turn.store(2 * i + 2, std::memory_order_release);
    }
  });
  double best = std::numeric_limits<double>::max();
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = batch * kExchanges; i < (batch + 1) * kExchanges; ++i) {
      line.turn.store(2 * i + 1, std::memory_order_release);
      line.wait(2 * i + 2);
    }
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / kExchanges);
  }
  other.join();
  return best;
}

}  // namespace octet::engine

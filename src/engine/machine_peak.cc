#include "engine/machine_peak.h"

#include <time.h>

#include <algorithm>
#include <thread>
#include <vector>

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

}  // namespace

MachinePeak measure_peak(Isa isa, int threads) {
  kernels::kernels(isa);  // asks the operating system for the AMX tiles
  const kernels::PeakLoop int8 = kernels::int8_peak_loop(isa), floats = kernels::float_peak_loop(isa);
  return {.int8_gmac_per_s = peak_of_threads(int8, threads),
          .float_gmac_per_s = peak_of_threads(floats, threads),
          .int8_instruction = int8.instruction,
          .float_instruction = floats.instruction};
}

}  // namespace octet::engine

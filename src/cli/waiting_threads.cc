#include "cli/waiting_threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace octet::cli {
namespace {

// Chosen with bench/training_under_load.sh on a kernel that changes tasks every 4 ms. Who sleeps sooner waits for a CPU
// again when there is work, beside a busy process for as long as that may keep it; who spins for longer spends its own
// share of the CPU on nothing. An idle machine is slower with little spinning, too: virtual CPUs take long to wake.
constexpr double kSpinSeconds = 0.8e-3;

// Of one look, as libgomp's do_spin has it (config/linux/wait.h, cpu_relax of each architecture): 13 ns on some CPUs,
// 50 on others. The least of several tries, as some may be interrupted.
double seconds_of_look() {
  constexpr int kTries = 8, kLooks = 500;
  const std::atomic<int> awaited = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int t = 0; t < kTries; ++t) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kLooks && awaited.load(std::memory_order_relaxed) == 0; ++i) {
#if defined(__x86_64__)
      _mm_pause();
#else
      asm volatile("" ::: "memory");
#endif
    }
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kLooks);
  }
  return least;
}

}  // namespace

bool let_waiting_threads_sleep() {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return false;
  const double looks = kSpinSeconds / std::max(seconds_of_look(), 1e-10);
  return setenv("GOMP_SPINCOUNT", std::to_string(std::lround(looks)).c_str(), 0) == 0;
}

}  // namespace octet::cli

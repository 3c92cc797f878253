#include "engine/late_threads.h"

#if defined(__linux__)
#include <pthread.h>
#include <time.h>
#endif

#include <algorithm>

#include "engine/steady_clock.h"

namespace octet::engine {
namespace {

// On a machine that stays busy a thread is tried this often. A try costs at worst what the system lets another process
// run for (some milliseconds), so this is a few percent, and an idle machine is noticed as soon.
constexpr int64_t kLongestRest = 200'000'000;
// A rest ago is not long ago.
constexpr int64_t kNotLong = 4;

#if defined(__linux__)
// Of a thread that runs: up to now. 0 where the system does not say.
int64_t time_of(int clock) {
  timespec t{};
  return ::clock_gettime(clock, &t) == 0 ? t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec : 0;
}
#endif

}  // namespace

void LateThreads::introduce([[maybe_unused]] int index, [[maybe_unused]] std::thread& thread) {
#if defined(__linux__)
  Thread& t = threads_[static_cast<size_t>(index)];
  clockid_t clock = 0;
  t.has_clock = ::pthread_getcpuclockid(thread.native_handle(), &clock) == 0;
  t.clock = clock;
#endif
}

LateThreads::Watch LateThreads::watch([[maybe_unused]] int thread) const {
#if defined(__linux__)
  const Thread& t = threads_[static_cast<size_t>(thread)];
  if (t.has_clock) return {.thread = thread, .start = steady_nanoseconds(), .cpu_time = time_of(t.clock)};
#endif
  return {};
}

void LateThreads::judge([[maybe_unused]] const Watch& watch, [[maybe_unused]] int64_t waited_before) {
#if defined(__linux__)
  if (watch.thread < 0) return;
  Thread& t = threads_[static_cast<size_t>(watch.thread)];
  const int64_t end = steady_nanoseconds(), waited = end - watch.start;
  if (t.rests || 2 * (time_of(t.clock) - watch.cpu_time) >= waited) return;
  const bool again = t.rest > 0 && end < t.until + kNotLong * t.rest;
  t.rest = std::min(std::max(again ? 2 * t.rest : 0, 2 * (waited_before + waited)), kLongestRest);
  t.until = end + t.rest;
  t.rests = true;
  ++resting_;
#endif
}

void LateThreads::wake_rested() {
  const int64_t time = steady_nanoseconds();
  for (Thread& t : threads_)
    if (t.rests && t.until <= time) t.rests = false, --resting_;
}

}  // namespace octet::engine

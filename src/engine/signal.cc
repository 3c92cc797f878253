#include "engine/signal.h"

#include <chrono>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace octet::engine {
namespace {

constexpr uint32_t kSleeps = 1;
// Looks before the clock is read: a thread that is waited for in a balanced step comes within these.
constexpr int kFirstLooks = 64, kLooksPerClock = 16;

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Sleeps until woken, if the word is still `value`; may return early.
void sleep_on(std::atomic<uint32_t>& word, uint32_t value) {
#if defined(__linux__)
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
#else
  word.wait(value);
#endif
}

void wake(std::atomic<uint32_t>& word) {
#if defined(__linux__)
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
#else
  word.notify_one();
#endif
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void Signal::post(uint32_t number) {
  if (word_.exchange(number << 1, std::memory_order_acq_rel) & kSleeps) wake(word_);
}

void Signal::wait(uint32_t number, SpinTime spin) {
  const auto posted = [number](uint32_t word) {
    // The difference, so that numbers may wrap.
    return static_cast<int32_t>((word & ~kSleeps) - (number << 1)) >= 0;
  };
  for (int look = 0; look < kFirstLooks; ++look) {
    if (posted(word_.load(std::memory_order_acquire))) return;
    pause_cpu();
  }
  for (const int64_t until = now() + spin.nanoseconds; now() < until;)
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (posted(word_.load(std::memory_order_acquire))) return;
      pause_cpu();
    }
  for (uint32_t word = word_.load(std::memory_order_acquire); !posted(word);) {
    // Whoever posts takes the bit away and wakes; a post in between makes the exchange or the sleep fail.
    if (!(word & kSleeps) &&
        !word_.compare_exchange_strong(word, word | kSleeps, std::memory_order_acquire, std::memory_order_acquire))
      continue;
    sleep_on(word_, word | kSleeps);
    word = word_.load(std::memory_order_acquire);
  }
}

}  // namespace octet::engine

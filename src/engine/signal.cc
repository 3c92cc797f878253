#include "engine/signal.h"

#include <bit>
#include <limits>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "engine/steady_clock.h"

namespace octet::engine {
namespace {

constexpr uint64_t kSleeps = 1;
// Looks before the clock is read: a thread that is waited for in a balanced step comes within these.
constexpr int kFirstLooks = 64, kLooksPerClock = 16;

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

#if defined(__linux__)
// The half that changes with every number: a futex has 32 bits. Two words that differ by a multiple of 2^32 look the
// same to it, which takes 2^31 posts between a look and the sleep after it.
uint32_t* low_half(std::atomic<uint64_t>& word) {
  return reinterpret_cast<uint32_t*>(&word) + (std::endian::native == std::endian::big ? 1 : 0);
}
#endif

// Sleeps until woken, if the word is still `value`; may return early.
void sleep_on(std::atomic<uint64_t>& word, uint64_t value) {
#if defined(__linux__)
  ::syscall(SYS_futex, low_half(word), FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(value), nullptr, nullptr, 0);
#else
  word.wait(value);
#endif
}

void wake(std::atomic<uint64_t>& word) {
#if defined(__linux__)
  ::syscall(SYS_futex, low_half(word), FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
#else
  word.notify_all();
#endif
}

}  // namespace

void Signal::post(uint64_t number) {
  // Release: what was done before is visible to who sees the number. The exchange (rather than a store and a look at
  // the bit) is what keeps a thread from falling asleep between the two. Acquire is not needed, as nothing is read from
  // who sleeps.
  if (word_.exchange(number << 1, std::memory_order_release) & kSleeps) wake(word_);
}

bool Signal::look_for(uint64_t wanted, int looks) const {
  while (number() < wanted) {
    if (--looks <= 0) return false;
    pause_cpu();
  }
  return true;
}

bool Signal::spin_for(uint64_t wanted, SpinTime spin) const {
  if (look_for(wanted, kFirstLooks)) return true;
  for (const int64_t until = steady_nanoseconds() + spin.nanoseconds; steady_nanoseconds() < until;)
    if (look_for(wanted, kLooksPerClock)) return true;
  return false;
}

void Signal::wait(uint64_t wanted, SpinTime spin) {
  if (spin_for(wanted, spin)) return;
  for (uint64_t word = word_.load(std::memory_order_acquire); word >> 1 < wanted;) {
    // Whoever posts takes the bit away and wakes; a post in between makes the exchange or the sleep fail. Acquire, as
    // the word that a failed exchange reads may be the one waited for.
    if (!(word & kSleeps) &&
        !word_.compare_exchange_strong(word, word | kSleeps, std::memory_order_acquire, std::memory_order_acquire))
      continue;
    sleep_on(word_, word | kSleeps);
    word = word_.load(std::memory_order_acquire);
  }
}

}  // namespace octet::engine

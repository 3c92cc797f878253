// What threads wait on: a number that rises, in a cache line of its own. A waiting thread spins for a while and then
// sleeps; posting where nobody sleeps is one exchange and no system call.
#pragma once
#include <atomic>
#include <cstdint>

namespace octet::engine {

// How long a waiting thread looks before it sleeps.
struct SpinTime {
  int64_t nanoseconds = 0;
};

// One thread posts at a time; any number may wait.
class alignas(64) Signal {
 public:
  // Numbers rise, from 1. Everything done before post(n) is visible to who has seen number() >= n, by any of these.
  void post(uint64_t number);
  uint64_t number() const { return word_.load(std::memory_order_acquire) >> 1; }
  // Whether the number comes within so many looks at it, one at least, or within that time.
  bool look_for(uint64_t number, int looks) const;
  bool spin_for(uint64_t number, SpinTime spin) const;
  void wait(uint64_t number, SpinTime spin);

 private:
  // Twice the number; the lowest bit says that a waiting thread sleeps.
  std::atomic<uint64_t> word_{0};
};

}  // namespace octet::engine

// What threads wait on: a counter in a cache line of its own, with one thread that posts and one that waits. A waiting
// thread spins for a while and then sleeps; posting to a thread that spins is one exchange and no system call.
#pragma once
#include <atomic>
#include <cstdint>

namespace octet::engine {

// How long a waiting thread looks before it sleeps.
struct SpinTime {
  int64_t nanoseconds = 0;
};

class alignas(64) Signal {
 public:
  // Numbers rise by one from 1 and may wrap. Everything done before post(n) is visible after wait(n) or wait(n - 1).
  void post(uint32_t number);
  void wait(uint32_t number, SpinTime spin);

 private:
  // Twice the number; the lowest bit says that the waiting thread sleeps.
  std::atomic<uint32_t> word_{0};
};

}  // namespace octet::engine

// Threads that work on one inference together: they meet at a barrier after every step. Waiting threads spin for a
// short while (a step takes microseconds) and then sleep.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace octet::engine {

// Meeting point of `threads` threads, used again and again. Everything done before wait() by any of them is visible to
// all of them after it.
class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}
  void wait();
  // Fewer threads will come. Only while at least one of the remaining ones has not arrived.
  void expect(int threads) { threads_.store(threads, std::memory_order_relaxed); }

 private:
  std::atomic<int> threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<int> sleepers_{0};
};

class ThreadTeam {
 public:
  // `threads` >= 1, the calling thread included. UserError when the system refuses to start them.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return threads_; }
  // Calls work(part) once on every thread, part 0 on the caller's, and returns when all are done. `work` must not throw
  // and must outlive the call. Not for several callers at a time.
  void run(const std::function<void(int part)>& work);
  Barrier& barrier() { return barrier_; }

 private:
  void serve(int part);
  void stop();

  const int threads_;
  Barrier barrier_, start_, finish_;
  const std::function<void(int)>* work_ = nullptr;  // nullptr: leave
  std::vector<std::thread> workers_;
};

}  // namespace octet::engine

// Threads that work on one inference together and meet at a barrier after every step. A step takes microseconds, so
// waiting threads spin; between inferences they spin for a short while and then sleep.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "engine/signal.h"

namespace octet::engine {

// Meeting point of `threads` threads, used again and again. Everything done before wait() by any of them is visible to
// all of them after it. A dissemination barrier (Hensgen, Finkel, Manber 1988): in round r, thread i posts to thread
// i + 2^r and waits for thread i - 2^r; two threads meet by one write each to the other's cache line.
class Barrier {
 public:
  Barrier(int threads, SpinTime spin);
  // Of thread `part`, 0 <= part < threads.
  void wait(int part);

 private:
  struct alignas(64) Count {
    uint32_t meetings = 0;
  };
  const int threads_;
  const SpinTime spin_;
  int rounds_ = 0;
  std::unique_ptr<Signal[]> signals_;  // [threads][rounds]
  std::unique_ptr<Count[]> counts_;
};

// Threads of somebody else. run(context, parts, work, task) calls work(task, part) once for every part in 0..parts-1,
// on any threads, and returns when all calls have returned.
struct PoolFunction {
  using Work = void (*)(void* task, int part);
  void (*run)(void* context, int parts, Work work, void* task) = nullptr;
  void* context = nullptr;
  // All parts run at the same time, each on a thread of its own, so that they may wait for each other.
  bool concurrent = false;
};

struct TeamOptions {
  int threads = 1;        // >= 1, the calling thread included
  std::vector<int> cpus;  // part i > 0 runs on cpus[i % size] alone; empty: where the system wants. The caller's thread
                          // is not touched.
  PoolFunction pool;      // these threads instead of own ones
  // How long waiting threads spin between two runs before they sleep; negative: the usual.
  int64_t idle_spin_ns = -1;
};

class ThreadTeam {
 public:
  // UserError when the system refuses to start the threads or to run them on these CPUs.
  explicit ThreadTeam(const TeamOptions& options);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return threads_; }
  // Parts of one run() may meet at the barrier. Where not, a run() must be a single step.
  bool has_barrier() const { return pool_.run == nullptr || pool_.concurrent || threads_ == 1; }
  // Calls work(part) once for every part, part 0 on the caller's thread unless a pool decides, and returns when all are
  // done. `work` must not throw and must outlive the call. Not for several callers at a time. UserError when a pool
  // does not run every part.
  void run(const std::function<void(int part)>& work);
  Barrier& barrier() { return barrier_; }

 private:
  void serve(int part, int cpu);
  void stop();
  void run_on_pool(const std::function<void(int)>& work);

  const int threads_;
  const PoolFunction pool_;
  const SpinTime idle_spin_;
  Barrier barrier_;
  const std::function<void(int)>* work_ = nullptr;  // nullptr: leave
  std::unique_ptr<Signal[]> start_;                 // one per worker
  uint32_t runs_ = 0;
  std::atomic<int> unpinned_{-1};  // a CPU that could not be had
  std::vector<std::thread> workers_;
};

}  // namespace octet::engine

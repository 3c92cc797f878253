// Threads that work on one inference together, step by step. A step takes microseconds, so waiting threads spin;
// between inferences they spin for a short while and then sleep.
//
// A step is cut into a part for each thread, but a part is done by whoever claims it first (engine/step_claims.h): a
// thread that is done with its own takes what nobody has begun. A thread that lost its CPU in the middle of a part is
// left out of the next runs for a while (engine/late_threads.h), which then have fewer parts. On a quiet machine every
// thread does its own part and meets the others by a write to its own cache line.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "engine/late_threads.h"
#include "engine/signal.h"
#include "engine/step_claims.h"

namespace octet::engine {

// Threads of somebody else. run(context, parts, work, task) calls work(task, part) once for every part in 0..parts-1,
// on any threads, and returns when all calls have returned.
struct PoolFunction {
  using Work = void (*)(void* task, int part);
  void (*run)(void* context, int parts, Work work, void* task) = nullptr;
  void* context = nullptr;
};

struct TeamOptions {
  int threads = 1;        // 1..StepClaims::kMostThreads, the calling thread included
  std::vector<int> cpus;  // thread i > 0 runs on cpus[i % size] alone; empty: where the system wants. The caller's
                          // thread is not touched.
  PoolFunction pool;      // these threads instead of own ones
  // How long waiting threads spin between two runs before they sleep; negative: the usual.
  int64_t idle_spin_ns = -1;
};

class ThreadTeam {
 public:
  // Part `part` of `parts` of a step. Parts of a step may run at the same time, on any threads; a step begins when all
  // parts of the one before are done, and sees what they did.
  using Work = std::function<void(size_t step, int part, int parts)>;

  // UserError when the system refuses to start the threads or to run them on these CPUs.
  explicit ThreadTeam(const TeamOptions& options);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return threads_; }
  // Does every part of every step once, some of them on the caller's thread unless a pool decides. A run has threads()
  // parts in every step, or fewer while the machine is busy. `work` must outlive the call. Not for several callers at a
  // time, nor from within itself. What `work` throws ends the run, and the first of it is thrown again. UserError when
  // a pool does not run every part.
  void run(size_t steps, const Work& work);

 private:
  // Written between runs by the caller, read by threads that have claimed a part, before they finish it: until then
  // the run cannot end.
  struct Run {
    const Work* work = nullptr;
    uint64_t first = 1, last = 0;  // steps, as StepClaims numbers them
    int parts = 1;
  };

  void serve(int thread, int cpu);
  void stop();
  void choose_threads();
  void open(size_t steps, const Work& work);
  void run_on_pool();
  void join_run(int thread);
  void follow(const Run& run, int thread, int home, bool claimed, uint64_t step);
  void do_part(const Run& run, uint64_t step, int part);
  void wait_for(int part, uint64_t step, int thread);

  const int threads_;
  const PoolFunction pool_;
  const SpinTime idle_spin_, spin_;
  StepClaims claims_;
  Run run_;
  // The step at work, times 2; one more after the last of a run. Only the caller writes it, and only threads that come
  // late read it.
  Signal open_;
  std::unique_ptr<std::atomic<int>[]> homes_;  // the part that a thread begins with; -1: it has a rest
  int parts_ = 1;                              // of the next run
  LateThreads late_;
  std::unique_ptr<Signal[]> start_;  // one per thread: its runs
  std::vector<uint64_t> started_;
  std::atomic<bool> leave_{false}, running_{false}, failed_{false};
  std::exception_ptr failure_;     // by who set failed_
  std::atomic<int> arrived_{0};    // workers that have asked for their CPUs
  std::atomic<int> unpinned_{-1};  // a CPU that could not be had
  std::vector<std::thread> workers_;
};

}  // namespace octet::engine

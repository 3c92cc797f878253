// Inferences in parallel: one executor of one thread per worker, behind a bounded queue.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/executor.h"

namespace octet::engine {

struct ThroughputOptions {
  int workers = 0;        // 0: one per entry of `cpus`, or available_cpus()
  std::vector<int> cpus;  // worker i runs on cpus[i % size] alone. Empty: on a CPU of its own where the workers are as
                          // many as the CPUs of the affinity mask, otherwise where the system wants.
  int queue = 0;          // inferences that may wait; 0: two per worker
};

// Any thread may call. Allocates nothing after construction.
class ThroughputPool {
 public:
  using Ticket = uint64_t;

  // UserError when memory, threads or CPUs cannot be had.
  ThroughputPool(std::shared_ptr<const PreparedPlan> plan, const ThroughputOptions& options);
  ~ThroughputPool();  // finishes what was submitted
  ThroughputPool(const ThroughputPool&) = delete;
  ThroughputPool& operator=(const ThroughputPool&) = delete;

  const PreparedPlan& plan() const { return *plan_; }
  int workers() const { return static_cast<int>(threads_.size()); }

  // One pointer per input and output of the plan; the tensors must stay until wait() returned. Where the queue is full,
  // waits for a place, or returns 0 if `wait` is false; otherwise a ticket above 0. `done` is called by the worker
  // before wait() returns; it must not throw, and not call the pool's waiting functions.
  using Completion = std::function<void(Ticket)>;
  Ticket submit(const float* const* inputs, float* const* outputs, bool wait = true, Completion done = {});
  void wait(Ticket ticket);
  void wait_all();

 private:
  struct Slot {
    std::vector<const float*> inputs;
    std::vector<float*> outputs;
    Completion completion;
    Ticket done = 0;  // the last ticket that was finished in this slot
  };
  Slot& slot_of(Ticket ticket) { return slots_[(ticket - 1) % slots_.size()]; }
  void serve(int worker, int cpu);
  void start(const ThroughputOptions& options);
  void stop();

  const std::shared_ptr<const PreparedPlan> plan_;
  std::vector<Slot> slots_;  // ticket t uses slot (t - 1) % size, once ticket t - size is done
  std::mutex mutex_;
  std::condition_variable submitted_, finished_;
  Ticket last_submitted_ = 0, last_taken_ = 0;
  bool leaving_ = false;
  int ready_ = 0;               // workers that have memory and CPU
  std::exception_ptr failure_;  // of a worker's start
  std::vector<std::thread> threads_;
};

}  // namespace octet::engine

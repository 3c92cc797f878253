#include "engine/throughput.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/cpu_limits.h"
#include "base/error.h"

namespace octet::engine {

ThroughputPool::ThroughputPool(std::shared_ptr<const PreparedPlan> plan, const ThroughputOptions& options)
    : plan_(std::move(plan)) {
  if (options.workers < 0 || options.workers > 1024) fail_usage("workers = ", options.workers, " is outside 1..1024");
  if (options.queue < 0 || options.queue > 1 << 20) fail_usage("queue = ", options.queue, " is outside 1..1048576");
  ThroughputOptions chosen = options;
  if (chosen.workers == 0)
    chosen.workers = chosen.cpus.empty() ? available_cpus() : static_cast<int>(chosen.cpus.size());
  if (chosen.queue == 0) chosen.queue = 2 * chosen.workers;
  slots_.resize(chosen.queue + chosen.workers);
  for (Slot& slot : slots_) {
    slot.inputs.resize(plan_->plan().inputs.size());
    slot.outputs.resize(plan_->plan().outputs.size());
  }
  try {
    start(chosen);
  } catch (const std::system_error& e) {
    stop();
    fail("cannot start ", chosen.workers, " workers: ", e.what(), "; use fewer");
  }
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return ready_ == chosen.workers || failure_; });
  if (!failure_) return;
  lock.unlock();
  stop();
  std::rethrow_exception(failure_);
}

void ThroughputPool::start(const ThroughputOptions& options) {
  const std::vector<int> allowed = allowed_cpus();
  const bool own_cpus = options.cpus.empty() && allowed.size() == static_cast<size_t>(options.workers);
  const std::vector<int>& cpus = own_cpus ? allowed : options.cpus;
  for (int i = 0; i < options.workers; ++i) {
    const int cpu = cpus.empty() ? -1 : cpus[i % cpus.size()];
    threads_.emplace_back([this, i, cpu] { serve(i, cpu); });
  }
}

ThroughputPool::~ThroughputPool() {
  stop();
}

void ThroughputPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  submitted_.notify_all();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void ThroughputPool::serve(int worker, int cpu) {
  std::unique_ptr<Executor> executor;
  try {
    if (cpu >= 0)
      require(pin_this_thread(cpu), "CPU ", cpu, " of worker ", worker, " is not one that this process may run on");
    // On this thread, so that the memory is near its CPU.
    executor = std::make_unique<Executor>(plan_, ExecutorOptions{.threads = 1});
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    finished_.notify_all();
    return;
  }
  std::unique_lock lock(mutex_);
  ++ready_;
  finished_.notify_all();
  for (;;) {
    submitted_.wait(lock, [&] { return leaving_ || last_taken_ < last_submitted_; });
    if (last_taken_ == last_submitted_) return;  // leaving, and nothing is left to do
    const Ticket ticket = ++last_taken_;
    Slot& slot = slot_of(ticket);
    lock.unlock();
    executor->run(slot.inputs.data(), slot.outputs.data());
    if (slot.completion) slot.completion(ticket);
    lock.lock();
    slot.done = ticket;
    finished_.notify_all();
  }
}

ThroughputPool::Ticket ThroughputPool::submit(const float* const* inputs, float* const* outputs, bool wait,
                                              Completion done) {
  std::unique_lock lock(mutex_);
  const auto room = [&] {
    const Ticket next = last_submitted_ + 1;
    return next <= slots_.size() || slot_of(next).done + slots_.size() >= next;
  };
  if (!room()) {
    if (!wait) return 0;
    finished_.wait(lock, room);
  }
  const Ticket ticket = ++last_submitted_;
  Slot& slot = slot_of(ticket);
  std::copy_n(inputs, slot.inputs.size(), slot.inputs.begin());
  std::copy_n(outputs, slot.outputs.size(), slot.outputs.begin());
  slot.completion = std::move(done);
  lock.unlock();
  submitted_.notify_one();
  return ticket;
}

void ThroughputPool::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  if (ticket == 0 || ticket > last_submitted_) fail("ticket ", ticket, " was never given out");
  finished_.wait(lock, [&] { return slot_of(ticket).done >= ticket; });
}

void ThroughputPool::wait_all() {
  std::unique_lock lock(mutex_);
  const Ticket last = last_submitted_;
  // The slots hold the last tickets; those before them are done.
  finished_.wait(lock, [&] {
    for (Ticket t = last; t > 0 && t + slots_.size() > last; --t)
      if (slot_of(t).done < t) return false;
    return true;
  });
}

}  // namespace octet::engine

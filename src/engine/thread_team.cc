#include "engine/thread_team.h"

#include <system_error>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/cpu_limits.h"
#include "base/error.h"

namespace octet::engine {
namespace {

// Longer than the differences between the shares of a step and than the caller's work between two inferences of a
// stream; short enough that an idle engine leaves the CPU alone.
constexpr int64_t kSpin = 100'000, kIdleSpin = 50'000;
// With more threads than CPUs, spinning keeps the awaited thread from running.
constexpr int64_t kCrowdedSpin = 2'000;

SpinTime spin_time(const TeamOptions& options, int64_t asked, int64_t usual) {
  if (asked >= 0) return {asked};
  return {options.threads <= available_cpus() ? usual : kCrowdedSpin};
}

#if defined(__x86_64__)
// Rounding to nearest, no flush to zero, whatever the process did to its own control word; undone at the end.
class DefaultRounding {
 public:
  DefaultRounding() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultRounding() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};
#elif defined(__aarch64__)
class DefaultRounding {
 public:
  DefaultRounding() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_)::"memory");
    asm volatile("msr fpcr, xzr" ::: "memory");
  }
  ~DefaultRounding() { asm volatile("msr fpcr, %0" ::"r"(saved_) : "memory"); }

 private:
  uint64_t saved_;
};
#else
struct DefaultRounding {
  DefaultRounding() {}
};
#endif

}  // namespace

Barrier::Barrier(int threads, SpinTime spin) : threads_(threads), spin_(spin) {
  while (1 << rounds_ < threads) ++rounds_;
  signals_ = std::make_unique<Signal[]>(static_cast<size_t>(threads) * rounds_);
  counts_ = std::make_unique<Count[]>(threads);
}

void Barrier::wait(int part) {
  const uint32_t meeting = ++counts_[part].meetings;
  for (int round = 0; round < rounds_; ++round) {
    const int other = (part + (1 << round)) % threads_;
    signals_[other * rounds_ + round].post(meeting);
    signals_[part * rounds_ + round].wait(meeting, spin_);
  }
}

ThreadTeam::ThreadTeam(const TeamOptions& options)
    : threads_(options.threads),
      pool_(options.pool),
      idle_spin_(spin_time(options, options.idle_spin_ns, kIdleSpin)),
      // Who asks for a long wait between inferences does not want sleep within one.
      barrier_(options.threads, spin_time(options, options.idle_spin_ns > kSpin ? options.idle_spin_ns : -1, kSpin)) {
  OCTET_CHECK(threads_ >= 1, "a team of ", threads_);
  if (pool_.run != nullptr) return;
  start_ = std::make_unique<Signal[]>(threads_);
  workers_.reserve(threads_ - 1);
  for (int part = 1; part < threads_; ++part) {
    const int cpu = options.cpus.empty() ? -1 : options.cpus[part % options.cpus.size()];
    try {
      workers_.emplace_back([this, part, cpu] { serve(part, cpu); });
    } catch (const std::system_error& e) {
      stop();
      fail("cannot start ", threads_, " threads: ", e.what(), "; use fewer threads");
    }
  }
  if (options.cpus.empty()) return;
  run([](int) {});  // by its end every worker has asked for its CPU
  if (const int cpu = unpinned_; cpu >= 0) {
    stop();
    fail("CPU ", cpu, " of the affinity list is not one that this process may run on");
  }
}

ThreadTeam::~ThreadTeam() {
  stop();
}

void ThreadTeam::stop() {
  work_ = nullptr;
  ++runs_;
  for (size_t i = 0; i < workers_.size(); ++i) start_[i + 1].post(runs_);
  for (std::thread& t : workers_) t.join();
  workers_.clear();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  const DefaultRounding rounding;
  if (pool_.run != nullptr) return run_on_pool(work);
  work_ = &work;
  ++runs_;
  for (int part = 1; part < threads_; ++part) start_[part].post(runs_);
  work(0);
  barrier_.wait(0);
}

void ThreadTeam::serve(int part, int cpu) {
  const DefaultRounding rounding;
  if (cpu >= 0 && !pin_this_thread(cpu)) unpinned_ = cpu;
  for (uint32_t run = 1;; ++run) {
    start_[part].wait(run, idle_spin_);
    if (work_ == nullptr) return;
    (*work_)(part);
    barrier_.wait(part);
  }
}

void ThreadTeam::run_on_pool(const std::function<void(int)>& work) {
  struct Task {
    const std::function<void(int)>* work;
    std::atomic<int> done;
  } task{&work, 0};
  pool_.run(
      pool_.context, threads_,
      [](void* opaque, int part) {
        const DefaultRounding rounding;
        auto* t = static_cast<Task*>(opaque);
        (*t->work)(part);
        t->done.fetch_add(1, std::memory_order_acq_rel);
      },
      &task);
  require(task.done.load(std::memory_order_acquire) == threads_, "the caller's thread pool ran ", task.done.load(),
          " of ", threads_, " parts; it must run every part once");
}

}  // namespace octet::engine

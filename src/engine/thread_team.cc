#include "engine/thread_team.h"

#include <algorithm>
#include <system_error>
#include <utility>

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
// Looks before a part that nobody has begun is taken from its usual thread: one to three microseconds, more than
// prompt threads differ by.
constexpr int kPatience = 64;

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

ThreadTeam::ThreadTeam(const TeamOptions& options)
    : threads_(options.threads),
      pool_(options.pool),
      idle_spin_(spin_time(options, options.idle_spin_ns, kIdleSpin)),
      // Who asks for a long wait between inferences does not want sleep within one.
      spin_(spin_time(options, options.idle_spin_ns > kSpin ? options.idle_spin_ns : -1, kSpin)),
      claims_(threads_),
      homes_(std::make_unique<std::atomic<int>[]>(threads_)),
      parts_(threads_),
      late_(threads_),
      start_(std::make_unique<Signal[]>(threads_)),
      started_(threads_, 0) {
  OCTET_CHECK(threads_ >= 1 && threads_ <= StepClaims::kMostThreads, "a team of ", threads_);
  if (pool_.run != nullptr) return;
  workers_.reserve(threads_ - 1);
  for (int thread = 1; thread < threads_; ++thread) {
    homes_[thread].store(thread, std::memory_order_relaxed);
    const int cpu = options.cpus.empty() ? -1 : options.cpus[thread % options.cpus.size()];
    try {
      workers_.emplace_back([this, thread, cpu] { serve(thread, cpu); });
    } catch (const std::system_error& e) {
      stop();
      fail("cannot start ", threads_, " threads: ", e.what(), "; use fewer threads");
    }
    late_.introduce(thread, workers_.back());
  }
  if (options.cpus.empty()) return;
  for (int arrived; (arrived = arrived_.load(std::memory_order_acquire)) < threads_ - 1;) arrived_.wait(arrived);
  if (const int cpu = unpinned_.load(std::memory_order_relaxed); cpu >= 0) {
    stop();
    fail("CPU ", cpu, " of the affinity list is not one that this process may run on");
  }
}

ThreadTeam::~ThreadTeam() {
  stop();
}

void ThreadTeam::stop() {
  leave_.store(true, std::memory_order_relaxed);  // published by the posts
  for (size_t i = 0; i < workers_.size(); ++i) start_[i + 1].post(++started_[i + 1]);
  for (std::thread& t : workers_) t.join();
  workers_.clear();
}

void ThreadTeam::run(size_t steps, const Work& work) {
  if (steps == 0) return;
  const DefaultRounding rounding;
  // A diagnosis, not a lock: it orders nothing.
  OCTET_CHECK(!running_.exchange(true, std::memory_order_relaxed), "a team runs one thing at a time");
  const struct Running {
    ~Running() { flag.store(false, std::memory_order_relaxed); }
    std::atomic<bool>& flag;
  } running{running_};
  choose_threads();
  if (parts_ == 1 && pool_.run == nullptr) {
    for (size_t step = 0; step < steps; ++step) work(step, 0, 1);
    return;
  }
  open(steps, work);
  if (pool_.run != nullptr) {
    run_on_pool();
  } else {
    follow(run_, 0, 0, false, run_.first);
    open_.post(2 * run_.last + 1);
  }
  if (failed_.load(std::memory_order_relaxed)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadTeam::choose_threads() {
  if (!late_.any() && parts_ == threads_) return;
  late_.wake_rested();
  parts_ = 1;
  // Relaxed: a thread that sees an old one tries to claim that part, and may or may not get it, as anybody.
  for (int thread = 1; thread < threads_; ++thread)
    homes_[thread].store(late_.rests(thread) ? -1 : parts_++, std::memory_order_relaxed);
}

void ThreadTeam::open(size_t steps, const Work& work) {
  run_ = {.work = &work, .first = run_.last + 1, .last = run_.last + steps, .parts = parts_};
  failed_.store(false, std::memory_order_relaxed);
  for (int part = parts_; part < threads_; ++part) claims_.close(part, run_.last);
  if (pool_.run != nullptr) return;  // it publishes this, and nobody comes late
  open_.post(2 * run_.first);
  for (int thread = 1; thread < threads_; ++thread)
    if (!late_.rests(thread)) start_[thread].post(++started_[thread]);
}

void ThreadTeam::serve(int thread, int cpu) {
  const DefaultRounding rounding;
  if (cpu >= 0 && !pin_this_thread(cpu)) unpinned_.store(cpu, std::memory_order_relaxed);
  // Release: what became of the pinning. The constructor waits for it.
  arrived_.fetch_add(1, std::memory_order_release);
  arrived_.notify_one();
  for (uint64_t heard = 0;;) {
    start_[thread].wait(heard + 1, idle_spin_);
    heard = start_[thread].number();
    if (leave_.load(std::memory_order_relaxed)) return;
    join_run(thread);
  }
}

// This may be a later run than the one that the thread was called for, or none any more.
void ThreadTeam::join_run(int thread) {
  for (;;) {
    // All that was done before this step was opened is visible from here on.
    const uint64_t open = open_.number();
    const int home = homes_[thread].load(std::memory_order_relaxed);
    if (open % 2 == 1 || home < 0) return;
    if (const uint64_t step = open / 2; claims_.claim(home, step, thread)) {
      const Run run = run_;  // not before: only now it stays as it is
      return follow(run, thread, home, true, step);
    }
    open_.wait(open + 1, spin_);
  }
}

// From `step`, which is open, to the end of the run. Where the others have left the thread behind, every claim fails,
// all parts are done, and so it is soon where they are, or out.
void ThreadTeam::follow(const Run& run, int thread, int home, bool claimed, uint64_t step) {
  for (bool all_prompt = true;; ++step) {
    if (claimed || claims_.claim(home, step, thread)) do_part(run, step, home);
    claimed = false;
    int looks = all_prompt ? kPatience : 1;
    all_prompt = true;
    for (int i = 1; i < run.parts; ++i) {
      const int part = home + i < run.parts ? home + i : home + i - run.parts;
      if (claims_.look_for(part, step, looks)) continue;
      looks = 1;
      if (!claims_.claim(part, step, thread)) continue;
      all_prompt = false;
      do_part(run, step, part);
    }
    if (step == run.last && thread != 0) return;
    for (int part = 0; part < run.parts; ++part)
      if (!claims_.is_done(part, step)) wait_for(part, step, thread);
    if (step == run.last) return;
    if (thread == 0) open_.post(2 * (step + 1));
  }
}

void ThreadTeam::do_part(const Run& run, uint64_t step, int part) {
  // Relaxed, like the exchange: who fails later than the first does not matter, and the exception is published with
  // the part.
  if (!failed_.load(std::memory_order_relaxed)) {
    try {
      (*run.work)(step - run.first, part, run.parts);
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
    }
  }
  claims_.finish(part, step);
}

// The caller's thread sees to it that none makes the others wait for long again and again.
void ThreadTeam::wait_for(int part, uint64_t step, int thread) {
  if (thread != 0 || pool_.run != nullptr) return claims_.wait(part, step, spin_);
  const SpinTime natural{std::min(spin_.nanoseconds, kSpin)};
  if (claims_.spin_for(part, step, natural)) return;
  const LateThreads::Watch watch = late_.watch(claims_.claimant(part));
  claims_.wait(part, step, {spin_.nanoseconds - natural.nanoseconds});
  late_.judge(watch, natural.nanoseconds);
}

void ThreadTeam::run_on_pool() {
  struct Task {
    ThreadTeam* team;
    std::atomic<int> done;
  } task{this, 0};
  pool_.run(
      pool_.context, threads_,
      [](void* opaque, int part) {
        const DefaultRounding rounding;
        auto* t = static_cast<Task*>(opaque);
        t->team->follow(t->team->run_, part, part, false, t->team->run_.first);
        t->done.fetch_add(1, std::memory_order_acq_rel);
      },
      &task);
  require(task.done.load(std::memory_order_acquire) == threads_, "the caller's thread pool ran ", task.done.load(),
          " of ", threads_, " parts; it must run every part once");
}

}  // namespace octet::engine

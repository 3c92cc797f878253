#include "engine/thread_team.h"

#include <system_error>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/error.h"

namespace octet::engine {
namespace {

// About 50 us; longer than the gap between two steps, shorter than what a person would call a busy CPU.
constexpr int kSpins = 1500;

#if defined(__x86_64__)
void pause_cpu() {
  _mm_pause();
}
// Rounding to nearest, no flush to zero, whatever the process did to its own control word; undone at the end.
class DefaultRounding {
 public:
  DefaultRounding() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultRounding() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};
#else
void pause_cpu() {}
struct DefaultRounding {
  DefaultRounding() {}
};
#endif

}  // namespace

void Barrier::wait() {
  if (threads_.load(std::memory_order_relaxed) == 1) return;
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == threads_.load(std::memory_order_relaxed) - 1) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
    return;
  }
  for (int i = 0; i < kSpins; ++i) {
    if (generation_.load(std::memory_order_acquire) != generation) return;
    pause_cpu();
  }
  // Announce the sleep before the last look at the generation, so that the last arrival cannot miss it.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (generation_.load(std::memory_order_seq_cst) == generation) generation_.wait(generation);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

ThreadTeam::ThreadTeam(int threads) : threads_(threads), barrier_(threads), start_(threads), finish_(threads) {
  OCTET_CHECK(threads >= 1, "a team of ", threads);
  workers_.reserve(threads - 1);
  for (int part = 1; part < threads; ++part) {
    try {
      workers_.emplace_back([this, part] { serve(part); });
    } catch (const std::system_error& e) {
      start_.expect(part);
      stop();
      fail("cannot start ", threads, " threads: ", e.what(), "; use fewer threads");
    }
  }
}

ThreadTeam::~ThreadTeam() {
  stop();
}

void ThreadTeam::stop() {
  work_ = nullptr;
  start_.wait();
  for (std::thread& t : workers_) t.join();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  const DefaultRounding rounding;
  work_ = &work;
  start_.wait();
  work(0);
  finish_.wait();
}

void ThreadTeam::serve(int part) {
  const DefaultRounding rounding;
  for (;;) {
    start_.wait();
    if (work_ == nullptr) return;
    (*work_)(part);
    finish_.wait();
  }
}

}  // namespace octet::engine

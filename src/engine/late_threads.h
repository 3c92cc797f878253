// Which threads of a team have a rest because the system lets others run in their place.
//
// A thread that loses its CPU in the middle of a part holds up all others until it gets one again, milliseconds later.
// Parts that nobody has begun are taken by others, but not this one, so what helps is to do without the thread while
// the machine is busy. Whether it had lost its CPU, or had merely more to do than the others, its own clock tells.
#pragma once
#include <cstdint>
#include <thread>
#include <vector>

namespace octet::engine {

class LateThreads {
 public:
  explicit LateThreads(int threads) : threads_(static_cast<size_t>(threads)) {}

  // Thread `index` is this one. Threads that were not introduced never have a rest.
  void introduce(int index, std::thread& thread);

  // A thread that others wait for.
  struct Watch {
    int thread = -1;
    int64_t start = 0;     // of std::chrono::steady_clock, in nanoseconds
    int64_t cpu_time = 0;  // of the thread, then
  };
  Watch watch(int thread) const;
  // The wait is over. A thread that ran for less than half of it has a rest: twice as long as it let others wait,
  // `waited_before` the watch included, and twice the last rest where that was not long ago.
  void judge(const Watch& watch, int64_t waited_before);

  bool any() const { return resting_ > 0; }
  bool rests(int index) const { return threads_[static_cast<size_t>(index)].rests; }
  // Ends the rests that are over by now.
  void wake_rested();

 private:
  struct Thread {
    bool has_clock = false, rests = false;
    int clock = 0;  // clockid_t
    int64_t rest = 0, until = 0;
  };
  std::vector<Thread> threads_;
  int resting_ = 0;
};

}  // namespace octet::engine

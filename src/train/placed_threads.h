// Where the threads of LibTorch run while they work on one thing together for long.
#pragma once
#include <vector>

namespace octet::train {

// Each thread of LibTorch, the calling one among them, has a CPU of its own while this lives; then they may run again
// wherever they could. Beside another process the system tends to put two threads that wait for each other in turns on
// one CPU, where they gain nothing from being two: ResNet-20 had a third of one thread's speed beside a single busy
// process. Does nothing unless there is one thread for each CPU of the calling thread's affinity mask: with fewer the
// system has a choice, and two such programs would choose the same CPUs. Results do not depend on it.
//
// Threads that are started meanwhile run on the caller's CPU alone, as does what asks for allowed_cpus().
class PlacedThreads {
 public:
  explicit PlacedThreads(bool wanted = true);
  ~PlacedThreads();
  PlacedThreads(const PlacedThreads&) = delete;
  PlacedThreads& operator=(const PlacedThreads&) = delete;

 private:
  std::vector<int> cpus_;  // by thread; empty: nothing was done
};

}  // namespace octet::train

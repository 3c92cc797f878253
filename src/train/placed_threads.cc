#include "train/placed_threads.h"

#include <utility>

#include "base/cpu_limits.h"
#include "train/parallel.h"
#include "train/torch_runtime.h"

namespace octet::train {

PlacedThreads::PlacedThreads(bool wanted) {
  if (!wanted || torch_threads() < 2) return;
  std::vector<int> cpus = allowed_cpus();
  if (static_cast<int>(cpus.size()) != torch_threads()) return;
  cpus_ = std::move(cpus);
  parallel_for(torch_threads(), 1, [&](int64_t i, int64_t) { pin_this_thread(cpus_[i]); });
}

PlacedThreads::~PlacedThreads() {
  if (cpus_.empty()) return;
  // Not where somebody else has moved the threads meanwhile (taskset -ap).
  parallel_for(static_cast<int64_t>(cpus_.size()), 1, [&](int64_t i, int64_t) {
    if (allowed_cpus() == std::vector<int>{cpus_[i]}) allow_this_thread(cpus_);
  });
}

}  // namespace octet::train

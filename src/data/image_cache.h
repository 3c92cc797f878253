// Decoded images kept in memory, so that later epochs need not decode them again.
//
// The first images that are read stay until the budget is full, and none is ever put out. An epoch reads every image
// once, in a new order: whichever images stay, an epoch finds their share of the dataset, and that is the best that
// any rule could do without knowing the order. The usual one, to put out what was not read for the longest time, puts
// out what the next epoch will ask for: with room for 30 % of the images it finds 5 % (50 %: 15 %), and it allocates
// all the time.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace octet::data {

// Bytes that several datasets may hold together. Its members may be called from several threads at once.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t bytes) : bytes_(bytes) {}
  // Takes them all, or nothing and says so; never more than the budget are taken.
  bool take(int64_t bytes) {
    int64_t used = used_.load(std::memory_order_relaxed);
    do
      if (bytes > bytes_ - used) return false;
    while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t bytes() const { return bytes_; }

 private:
  const int64_t bytes_;
  std::atomic<int64_t> used_{0};
};

// `dataset`, of which images stay in memory, with all that belongs to an entry counted, as long as `budget` has room.
// What get() gives is the same.
std::unique_ptr<Dataset> keep_decoded(std::unique_ptr<Dataset> dataset, std::shared_ptr<MemoryBudget> budget);

// `megabytes` (2^20 bytes), but at most half of the memory that the system has left now, which the process may share
// with others; null for 0.
std::shared_ptr<MemoryBudget> decoded_image_budget(int64_t megabytes);

}  // namespace octet::data

// Which images an epoch has, and in which order: a function of the portions, the seed and the epoch.
#pragma once
#include <cstdint>
#include <vector>

namespace octet::data {

// A run of a dataset's images, and how often each of them comes in an epoch, on average over epochs.
struct Portion {
  int64_t images = 0;  // > 0
  double weight = 1;   // > 0
};

// Of a portion of n images an epoch has k = weight * n, rounded, at least one: every image k / n times (rounded down),
// and k % n of them once more. Those are the next ones of a fixed random order, to whose beginning they return, so that
// over epochs the images of a portion come equally often, give or take one.
class EpochOrder {
 public:
  // One image of an epoch.
  struct Draw {
    int64_t image = 0;       // in the dataset
    int64_t repetition = 0;  // how often the epoch had that image before
    bool operator==(const Draw&) const = default;
  };

  // `portions` lie one after the other in the dataset. With `shuffle` an epoch's draws are in random order, else in
  // that of the dataset, portion by portion.
  EpochOrder(std::vector<Portion> portions, uint64_t seed, bool shuffle);

  int64_t size() const { return size_; }  // draws in every epoch
  std::vector<Draw> draws(int epoch) const;

 private:
  struct Share {
    int64_t first = 0, images = 0;  // in the dataset
    int64_t whole = 0;              // times that every image comes
    int64_t more = 0;               // images that come once more
    std::vector<int64_t> turns;     // the order in which they do; empty where none does
  };
  std::vector<Share> shares_;
  uint64_t seed_;
  bool shuffle_;
  int64_t size_ = 0;
};

}  // namespace octet::data

#include "train/placed_threads.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "base/cpu_limits.h"
#include "train/parallel.h"
#include "train/torch_runtime.h"

namespace octet::train {
namespace {

// The masks of LibTorch's threads, by thread.
std::vector<std::vector<int>> masks() {
  std::vector<std::vector<int>> out(torch_threads());
  parallel_for(torch_threads(), 1, [&](int64_t i, int64_t) { out[i] = allowed_cpus(); });
  return out;
}

class PlacedThreadsTest : public ::testing::Test {
 protected:
  ~PlacedThreadsTest() override { set_torch_threads(0); }
  const std::vector<int> cpus_ = allowed_cpus();
};

TEST_F(PlacedThreadsTest, GivesEachThreadACpuAndTakesItBack) {
  if (cpus_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  set_torch_threads(static_cast<int>(cpus_.size()));
  const std::vector<std::vector<int>> anywhere(cpus_.size(), cpus_);
  EXPECT_EQ(masks(), anywhere);
  {
    const PlacedThreads placed;
    std::set<int> own;
    for (const std::vector<int>& mask : masks()) {
      ASSERT_EQ(mask.size(), 1u);
      own.insert(mask[0]);
    }
    EXPECT_EQ(own, std::set<int>(cpus_.begin(), cpus_.end()));
    const std::vector<std::vector<int>> before = masks();
    {
      const PlacedThreads within;
      EXPECT_EQ(masks(), before);
    }
    EXPECT_EQ(masks(), before);
  }
  EXPECT_EQ(masks(), anywhere);
  {
    const PlacedThreads placed(false);
    EXPECT_EQ(masks(), anywhere);
  }
}

TEST_F(PlacedThreadsTest, LeavesAThreadThatWasMovedWhereItIs) {
  if (cpus_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  set_torch_threads(static_cast<int>(cpus_.size()));
  std::thread([&] {
    {
      const PlacedThreads placed;
      ASSERT_EQ(allowed_cpus(), std::vector<int>{cpus_[0]});
      ASSERT_TRUE(pin_this_thread(cpus_[1]));
    }
    EXPECT_EQ(allowed_cpus(), std::vector<int>{cpus_[1]});
  }).join();
}

// The system then has CPUs to choose from.
TEST_F(PlacedThreadsTest, DoesNothingWithAnotherNumberOfThreadsThanCpus) {
  for (const int threads : {1, static_cast<int>(cpus_.size()) + 1}) {
    set_torch_threads(threads);
    const PlacedThreads placed;
    EXPECT_EQ(masks(), std::vector<std::vector<int>>(threads, cpus_));
  }
}

}  // namespace
}  // namespace octet::train

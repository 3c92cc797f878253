#include "train/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "train/torch_runtime.h"

namespace octet::train {
namespace {

class ParallelFor : public ::testing::Test {
 protected:
  ~ParallelFor() override { set_torch_threads(0); }

  struct Seen {
    std::vector<std::pair<int64_t, int64_t>> parts;  // sorted
    std::set<std::thread::id> threads;
  };
  static Seen run(int64_t count, int64_t grain) {
    Seen seen;
    std::mutex mutex;
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(mutex);
      seen.parts.emplace_back(begin, end);
      seen.threads.insert(std::this_thread::get_id());
    });
    std::sort(seen.parts.begin(), seen.parts.end());
    return seen;
  }
};

using Parts = std::vector<std::pair<int64_t, int64_t>>;

TEST_F(ParallelFor, RunsEachPartOnAThreadOfItsOwn) {
  set_torch_threads(3);
  const Seen seen = run(10, 1);
  EXPECT_EQ(seen.parts, (Parts{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(seen.threads.size(), 3u);
  EXPECT_EQ(seen.threads.count(std::this_thread::get_id()), 1u);
}

TEST_F(ParallelFor, KeepsSmallLoopsTogether) {
  set_torch_threads(3);
  EXPECT_EQ(run(0, 1).parts, Parts{});
  EXPECT_EQ(run(4, 8).parts, (Parts{{0, 4}}));
  EXPECT_EQ(run(12, 8).parts, (Parts{{0, 6}, {6, 12}}));
  EXPECT_EQ(run(4, 1).parts, (Parts{{0, 2}, {2, 4}}));  // not a third, empty one
  set_torch_threads(1);
  EXPECT_EQ(run(100, 1).parts, (Parts{{0, 100}}));
}

TEST_F(ParallelFor, IsPlainWithinAnother) {
  set_torch_threads(2);
  std::mutex mutex;
  std::vector<Parts> inner;
  parallel_for(2, 1, [&](int64_t, int64_t) {
    const Parts parts = run(8, 1).parts;
    const std::lock_guard lock(mutex);
    inner.push_back(parts);
  });
  EXPECT_EQ(inner, (std::vector<Parts>{{{0, 8}}, {{0, 8}}}));
}

TEST_F(ParallelFor, FollowsTheNumberInOtherThreads) {
  set_torch_threads(2);
  Seen seen;
  std::thread([&] { seen = run(8, 1); }).join();
  EXPECT_EQ(seen.parts, (Parts{{0, 4}, {4, 8}}));
  EXPECT_EQ(seen.threads.size(), 2u);
}

TEST_F(ParallelFor, ThrowsWhatTheFirstPartThrew) {
  set_torch_threads(2);
  std::set<int64_t> ran;
  std::mutex mutex;
  const auto loop = [&] {
    parallel_for(2, 1, [&](int64_t begin, int64_t) {
      {
        const std::lock_guard lock(mutex);
        ran.insert(begin);
      }
      throw std::runtime_error(begin == 0 ? "first" : "second");
    });
  };
  try {
    loop();
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(ran, (std::set<int64_t>{0, 1}));
}

}  // namespace
}  // namespace octet::train

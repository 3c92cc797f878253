#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace octet {

void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0};
  const auto take = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < count;) work(i);
  };
  std::vector<std::jthread> helpers;
  try {
    for (int64_t i = 1; i < std::min<int64_t>(threads, count); ++i) helpers.emplace_back(take);
  } catch (const std::system_error&) {
    // Without helpers this thread does all of it.
  }
  take();
}

}  // namespace octet

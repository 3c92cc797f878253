#include "base/cpu_wait.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/cpu_limits.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

TEST(CpuWait, ReadsWhatTheSystemSays) {
  const fs::path folder = fs::temp_directory_path() / ("octet_cpu_wait_" + std::to_string(::getpid()));
  const auto write = [&](const char* thread, const char* text) {
    fs::create_directories(folder / thread);
    std::ofstream(folder / thread / "schedstat") << text;
  };
  EXPECT_EQ(cpu_wait_of_threads(folder), std::nullopt);
  EXPECT_EQ(cpu_wait_of_thread(folder / "1"), std::nullopt);
  write("1", "1000 200 3\n");
  write("2", "5 7 1\n");
  write("3", "nothing\n");
  EXPECT_EQ(cpu_wait_of_thread(folder / "1"), 200);
  EXPECT_EQ(cpu_wait_of_thread(folder / "3"), std::nullopt);
  EXPECT_EQ(cpu_wait_of_threads(folder), 207);
  fs::remove_all(folder);
}

TEST(CpuWait, GrowsWhereThreadsShareACpu) {
  const auto before = cpu_wait_of_thread();
  if (!before) GTEST_SKIP() << "this system does not say";
  std::vector<std::thread> threads;
  std::atomic<int64_t> waited{0};
  const int cpu = allowed_cpus()[0];
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      pin_this_thread(cpu);
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
      while (std::chrono::steady_clock::now() < until) {
      }
      waited += cpu_wait_of_thread().value_or(0);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_GT(waited, 50'000'000) << "of 200 ms";
  EXPECT_GT(load_average().value_or(1), 0);
}

}  // namespace
}  // namespace octet

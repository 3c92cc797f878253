// Ranks that are processes: they agree, and notice when one of them is gone.
#include "train/process_group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/error.h"

namespace octet::train {
namespace {

// A port that was free a moment ago.
int free_port() {
  return 20000 + static_cast<int>(::getpid() % 30000);
}

// Runs `work` on each of `size` processes; their exit statuses.
std::vector<int> on_processes(int size, const std::function<int(Communicator&)>& work, int timeout_s = 20) {
  const int port = free_port();
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 99;
      try {
        const World world{.rank = rank, .size = size, .local_rank = rank, .local_size = size, .port = port};
        code = work(*join_process_group(world, std::chrono::seconds(timeout_s)));
      } catch (const UserError& error) {
        std::cerr << error.what() << std::endl;
        code = std::string(error.what()).find("another worker has ended") != std::string::npos ? 7 : 8;
      }
      ::_exit(code);
    }
    children.push_back(child);
  }
  std::vector<int> out;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    out.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  return out;
}

#define CHECK_RANK(condition)                                                \
  if (!(condition)) {                                                        \
    std::cerr << "rank " << ranks.rank() << ": " << #condition << std::endl; \
    return 1;                                                                \
  }

TEST(ProcessGroup, RanksAgree) {
  const std::vector<int> codes = on_processes(3, [](Communicator& ranks) {
    const int rank = ranks.rank();
    std::vector<at::Tensor> values = {
        at::full({2, 3}, static_cast<double>(rank + 1)), at::full({}, static_cast<double>(rank), at::kDouble),
        at::empty({0}), at::full({2, 2, 2, 2}, static_cast<double>(-rank)).contiguous(at::MemoryFormat::ChannelsLast)};
    const at::Tensor alias = values[0];
    ranks.all_reduce(values, Reduce::kMean);
    CHECK_RANK(alias.eq(2).all().item<bool>());
    CHECK_RANK(values[1].item<double>() == 1);
    CHECK_RANK(values[3].eq(-1).all().item<bool>());
    at::Tensor largest = at::scalar_tensor(rank == 1 ? 5.0 : 1.0);
    ranks.all_reduce({&largest, 1}, Reduce::kMax);
    CHECK_RANK(largest.item<double>() == 5);
    // Under way at a time.
    const at::Tensor a = at::full({1000}, static_cast<double>(rank)), b = at::full({10}, static_cast<double>(3 * rank));
    const auto first = ranks.start_all_reduce(a, Reduce::kMean), second = ranks.start_all_reduce(b, Reduce::kSum);
    first->wait();
    second->wait();
    CHECK_RANK(a.eq(1).all().item<bool>() && b.eq(9).all().item<bool>());
    CHECK_RANK(ranks.broadcast(rank == 0 ? std::string("x\0y", 3) : "other") == std::string("x\0y", 3));
    CHECK_RANK(ranks.broadcast("").empty());
    const std::vector<std::string> all = ranks.gather(std::string(static_cast<size_t>(rank), 'a'));
    CHECK_RANK(rank == 0 ? all == std::vector<std::string>({"", "a", "aa"}) : all.empty());
    CHECK_RANK(combined(ranks, "r" + std::to_string(rank), [](const std::vector<std::string>& of_ranks) {
                 return of_ranks[0] + of_ranks[1] + of_ranks[2];
               }) == "r0r1r2");
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>({0, 0, 0}));
}

// What one rank cannot do is told once, and ends all of them.
TEST(ProcessGroup, AnErrorOfOneRankIsThatOfAll) {
  const std::vector<int> codes = on_processes(2, [](Communicator& ranks) {
    try {
      on_all_ranks(ranks, [&] {
        if (ranks.rank() == 1) fail_usage("no such file");
      });
    } catch (const UserError& error) {
      CHECK_RANK(error.code() == ExitCode::kUsage);
      CHECK_RANK(std::string(error.what()) == (ranks.rank() == 1 ? "no such file" : ""));
      return 5;
    }
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>({5, 5}));
}

TEST(ProcessGroup, ALostRankEndsTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<int> codes = on_processes(3, [](Communicator& ranks) {
    for (int step = 0;; ++step) {
      if (ranks.rank() == 1 && step == 3) ::raise(SIGKILL);
      at::Tensor value = at::ones({100});
      ranks.all_reduce({&value, 1}, Reduce::kMean);
    }
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>({7, -SIGKILL, 7}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15)) << "long before the time-out";
}

// One that hangs, as behind a cut cable, is noticed within the time-out.
TEST(ProcessGroup, ARankThatHangsIsTakenForLost) {
  const std::vector<int> codes = on_processes(
      2,
      [](Communicator& ranks) {
        if (ranks.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(7));
        at::Tensor value = at::ones({1});
        ranks.all_reduce({&value, 1}, Reduce::kMean);
        return 0;
      },
      4);
  EXPECT_EQ(codes[0], 7);
}

}  // namespace
}  // namespace octet::train

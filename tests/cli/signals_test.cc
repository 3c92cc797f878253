// The first SIGINT or SIGTERM ends a command that has nothing to save, and leaves nothing half-written.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "cli/program_fixture.h"

namespace {

using octet::test::Cli;
using namespace std::chrono_literals;

class Signals : public Cli {
 protected:
  // `octet` with these words, its output thrown away.
  pid_t start(const std::vector<std::string>& words) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (::chdir(folder_.c_str()) != 0) ::_exit(126);
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(nothing, 1);
    ::dup2(nothing, 2);
    const std::string path = program();
    std::vector<char*> arguments{const_cast<char*>(path.c_str())};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(path.c_str(), arguments.data());
    ::_exit(127);
  }
  // The status of a child that ends within `limit`; else it is killed and -1 comes back.
  static int wait_for(pid_t child, std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (std::chrono::steady_clock::now() < until) {
      if (::waitpid(child, &status, WNOHANG) == child) return status;
      std::this_thread::sleep_for(10ms);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return -1;
  }
};

TEST_F(Signals, TheFirstOneEndsABenchmark) {
  ASSERT_EQ(octet("models resnet20 -o m.onnx").code, 0);
  ASSERT_EQ(octet("compile m.onnx -o m.octet").code, 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = start({"bench", "m.octet", "--runs", "1000000", "--json", "out.json"});
    std::this_thread::sleep_for(500ms);
    ASSERT_EQ(::kill(child, signal), 0);
    const int status = wait_for(child, 2000ms);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << signal << ": " << status;
    EXPECT_FALSE(exists("out.json"));
  }
}

// A writer that waits: the other end of the pipe is not read. What it has begun under a temporary name goes with it.
TEST_F(Signals, ItEndsACommandThatWaitsForAPipe) {
  ASSERT_EQ(octet("models resnet20 -o m.onnx").code, 0);
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0666), 0);
  const pid_t child = start({"compile", "m.onnx", "-o", "pipe"});
  std::this_thread::sleep_for(500ms);
  ASSERT_EQ(::kill(child, SIGTERM), 0);
  const int status = wait_for(child, 2000ms);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

// The kernel shields the first process of a container from signals that have their default effect.
TEST_F(Signals, TheyEndTheFirstProcessOfAContainer) {
  if (std::system("unshare --pid --fork true 2>/dev/null") != 0) GTEST_SKIP() << "no PID namespaces here";
  ASSERT_EQ(octet("models resnet20 -o m.onnx").code, 0);
  // The namespace's own exit status says how its first process ended.
  const std::string script =
      "cd '" + folder_ + "'; unshare --pid --fork --kill-child '" + program() +
      "' bench m.onnx --runs 1000000 >/dev/null 2>&1 & outer=$!; sleep 1; " +
      "kill -TERM $(cat /proc/$outer/task/$outer/children); sleep 2; " +
      "if [ -d /proc/$outer ] && ! grep -q Z /proc/$outer/status; then kill -KILL $outer; fi; wait $outer";
  std::ofstream(folder_ + "/script.sh") << script;
  const int ended = std::system(("sh '" + folder_ + "/script.sh'").c_str());
  EXPECT_EQ(WEXITSTATUS(ended), 128 + SIGTERM);
}

}  // namespace

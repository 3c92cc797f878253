#include "base/log.h"

#include <gmock/gmock.h>
#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/worker_process.h"

namespace octet {
namespace {

// What `speak` writes to standard error while that is a terminal.
template <typename Speak>
std::string on_terminal(const Speak& speak) {
  int controller = -1, terminal = -1;
  OCTET_CHECK(::openpty(&controller, &terminal, nullptr, nullptr, nullptr) == 0);
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(terminal, STDERR_FILENO);
  speak();
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  char text[4096];
  const ssize_t size = ::read(controller, text, sizeof text);
  ::close(terminal);
  ::close(controller);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

TEST(Log, HasColorsOnATerminalUnlessTheyAreNotWanted) {
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  const auto warn = [] { log_warning("it is ", 3, " o'clock"); };
  EXPECT_EQ(on_terminal(warn), "\033[33m\033[1mwarning\033[m: it is 3 o'clock\r\n");
  ::setenv("NO_COLOR", "", 1);  // empty is as good as not set
  EXPECT_THAT(on_terminal(warn), testing::HasSubstr("\033"));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(on_terminal(warn), "warning: it is 3 o'clock\r\n");
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_EQ(on_terminal(warn), "warning: it is 3 o'clock\r\n");
}

TEST(Log, HasNoneInAFile) {
  testing::internal::CaptureStderr();
  log_info("one\ntwo");
  log_debug("not shown");
  set_log_prefix("rank 1: ");
  log_info("three");
  set_log_prefix("");
  set_log_level(LogLevel::kSilent);
  log_message(LogLevel::kError, "nor this");
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "info: one\\ntwo\ninfo: rank 1: three\n");
}

}  // namespace
}  // namespace octet

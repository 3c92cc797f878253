#include "base/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace octet {
namespace {

// In a child process, because the flag and the handlers are the process's own.
TEST(SignalsDeathTest, TheFirstSignalOnlyAsks) {
  EXPECT_EXIT(
      {
        install_stop_handler();
        if (stop_requested()) std::exit(10);
        std::raise(SIGTERM);
        std::exit(stop_requested() && std::string(stop_signal_name()) == "SIGTERM" ? 0 : 11);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SignalsDeathTest, WhatDoesNotAskIsEndedByTheFirstSignal) {
  for (const int signal : {SIGINT, SIGTERM})
    EXPECT_EXIT(
        {
          install_end_handler();
          std::raise(signal);
          std::exit(13);
        },
        testing::KilledBySignal(signal), "");
}

TEST(SignalsDeathTest, TheSecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        install_stop_handler();
        std::raise(SIGINT);
        std::raise(SIGINT);
        std::exit(12);
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace octet

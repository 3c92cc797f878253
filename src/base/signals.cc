#include "base/signals.h"

#include <csignal>

namespace octet {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void remember(int signal) {
  stop_signal = signal;
}

}  // namespace

void install_stop_handler() {
  struct sigaction action {};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  // Reset after the first: a second signal then has its default effect. Interrupted reads and writes go on.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stop_requested() {
  return stop_signal != 0;
}

const char* stop_signal_name() {
  if (stop_signal == SIGINT) return "SIGINT";
  if (stop_signal == SIGTERM) return "SIGTERM";
  return "";
}

}  // namespace octet

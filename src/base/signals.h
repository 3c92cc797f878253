// Ctrl-C and a scheduler's SIGTERM: they end the program at once, or let work that can go on later finish its step.
#pragma once
#include "base/error.h"

namespace octet {

// From here on SIGINT and SIGTERM end the process as they do by default, also where it is the first process of a
// container, which the kernel shields from the default effect; files that are being written under temporary names are
// removed before. Call once, from main.
void install_end_handler();

// From here on the first SIGINT, SIGTERM or SIGUSR1 (which schedulers send before they take a machine away) only sets a
// flag, for work that asks stop_requested() often; the second ends the process. Call when that work begins.
void install_stop_handler();

// The exit code of work that a signal stopped: 128 and its number, as shells count.
inline ExitCode stopped_by(int signal) {
  return static_cast<ExitCode>(128 + signal);
}

bool stop_requested();
// Its number; 0 when nothing was requested.
int stop_signal();
// "SIGINT", "SIGTERM", "SIGUSR1", or an empty string when nothing was requested.
const char* stop_signal_name();

// Ends the process as the signal does by default, so that who waits for it, as a shell or a scheduler, sees why.
[[noreturn]] void end_by_signal(int signal);

}  // namespace octet

// Ctrl-C and a scheduler's SIGTERM: they end the program at once, or let work that can go on later finish its step.
#pragma once

namespace octet {

// From here on SIGINT and SIGTERM end the process as they do by default, also where it is the first process of a
// container, which the kernel shields from the default effect; files that are being written under temporary names are
// removed before. Call once, from main.
void install_end_handler();

// From here on the first SIGINT, SIGTERM or SIGUSR1 (which schedulers send before they take a machine away) only sets a
// flag, for work that asks stop_requested() often; the second ends the process. Call when that work begins.
void install_stop_handler();

bool stop_requested();
// "SIGINT", "SIGTERM", "SIGUSR1", or an empty string when nothing was requested.
const char* stop_signal_name();

}  // namespace octet

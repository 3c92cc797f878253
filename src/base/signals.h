// Stopping on request: Ctrl-C and a scheduler's SIGTERM let the program finish what it is writing.
#pragma once

namespace octet {

// From here on the first SIGINT or SIGTERM only sets a flag that long work asks for; the second ends the process as
// usual, for work that does not ask. Call once, from main.
void install_stop_handler();

bool stop_requested();
// "SIGINT", "SIGTERM", or an empty string when nothing was requested.
const char* stop_signal_name();

}  // namespace octet

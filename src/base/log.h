// Messages to the person running the program, on standard error, one line each: "warning: ...". The first word has a
// color where that is a terminal, unless the environment variable NO_COLOR is set to something.
#pragma once
#include <string>

#include "base/error.h"

namespace octet {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kSilent };
void set_log_level(LogLevel level);
bool is_logged(LogLevel level);  // whether a message of this level is shown

// From any thread; lines do not mix.
void log_message(LogLevel level, const std::string& message);

template <typename... Args>
void log_info(Args&&... args) {
  log_message(LogLevel::kInfo, str(std::forward<Args>(args)...));
}
template <typename... Args>
void log_warning(Args&&... args) {
  log_message(LogLevel::kWarning, str(std::forward<Args>(args)...));
}
template <typename... Args>
void log_debug(Args&&... args) {
  log_message(LogLevel::kDebug, str(std::forward<Args>(args)...));
}

}  // namespace octet

#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "base/printable.h"
#include "base/worker_process.h"

namespace octet {
namespace {

struct Appearance {
  std::string_view name, color;  // the escape sequence of a terminal (ECMA-48)
};

Appearance appearance_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return {"debug", "\033[36m"};  // cyan
    case LogLevel::kInfo:
      return {"info", "\033[32m"};  // green
    case LogLevel::kWarning:
      return {"warning", "\033[33m\033[1m"};  // yellow, bold
    case LogLevel::kError:
      return {"error", "\033[31m\033[1m"};  // red, bold
    case LogLevel::kSilent:
      break;
  }
  return {};
}

// NO_COLOR as no-color.org has it; a terminal called dumb obeys no sequences.
bool has_colors() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return ::isatty(STDERR_FILENO) == 1 && variable("NO_COLOR").empty() && !variable("TERM").empty() &&
         variable("TERM") != "dumb";
}

std::atomic<LogLevel> lowest_level{LogLevel::kInfo};

// The prefix, and the lock under which lines leave whole.
struct LogOutput {
  std::mutex mutex;
  std::string prefix;
};
// Never destroyed: threads may speak until the very end.
LogOutput& output() {
  static auto* instance = new LogOutput;
  return *instance;
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;  // nobody is left to be told
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

void set_log_level(LogLevel level) {
  lowest_level = level;
}

void set_log_prefix(const std::string& prefix) {
  const std::lock_guard lock(output().mutex);
  output().prefix = prefix;
}

bool is_logged(LogLevel level) {
  return level != LogLevel::kSilent && level >= lowest_level.load();
}

void log_message(LogLevel level, const std::string& message) {
  if (!is_logged(level)) return;
  const auto [name, color] = appearance_of(level);
  std::string line;
  if (has_colors())
    line.append(color).append(name).append("\033[m");
  else
    line.append(name);
  const std::lock_guard lock(output().mutex);
  line.append(": ").append(output().prefix).append(printable_line(message)).append("\n");
  write_all(line);
}

}  // namespace octet

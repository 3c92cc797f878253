// The two kinds of failure. A UserError is something the person at the keyboard can mend: one sentence that says what,
// where (file, line, node, tensor; expected and actual) and what to do; it carries the process's exit code.
// An InternalError is a broken invariant of Octet itself.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace octet {

// Exit codes of the program.
enum class ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kCheckFailed = 3 };

class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message, ExitCode code = ExitCode::kFailed)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// All arguments streamed into one string.
template <typename... Args>
std::string str(Args&&... args) {
  std::ostringstream out;
  static_cast<void>((out << ... << std::forward<Args>(args)));
  return out.str();
}

// Throws a UserError with exit code 1 (the work failed).
template <typename... Args>
[[noreturn]] void fail(Args&&... args) {
  throw UserError(str(std::forward<Args>(args)...));
}

// Throws a UserError with exit code 2 (usage or spec error).
template <typename... Args>
[[noreturn]] void fail_usage(Args&&... args) {
  throw UserError(str(std::forward<Args>(args)...), ExitCode::kUsage);
}

// fail() unless `ok`.
template <typename... Args>
void require(bool ok, Args&&... args) {
  if (!ok) fail(std::forward<Args>(args)...);
}

namespace internal {
[[noreturn]] void internal_failure(const char* file, int line, const char* condition, const std::string& message);
}  // namespace internal

// Checks an invariant of Octet itself; further arguments are streamed into the message.
#define OCTET_CHECK(condition, ...)                                                                                   \
  do {                                                                                                                \
    if (!(condition)) ::octet::internal::internal_failure(__FILE__, __LINE__, #condition, ::octet::str(__VA_ARGS__)); \
  } while (false)

}  // namespace octet

#include "weights/guarded.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/error.h"

namespace octet::weights {
namespace {

constexpr char kTensors = 'T',
               kError = 'E';  // the first byte that comes back; a safetensors file or a sentence follows

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string read_all(int file) {
  std::string out;
  std::string buffer(size_t{1} << 20, '\0');
  while (true) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return out;
    out.append(buffer, 0, static_cast<size_t>(count));
  }
}

// Never returns: nothing of this process may be finished twice.
[[noreturn]] void work(const std::function<checkpoint::NamedTensors()>& read, int out) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGINT}) ::signal(signal, SIG_DFL);
  const rlimit no_core = {0, 0}, minute = {60, 60};
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_CPU, &minute);
  std::string answer;
  try {
    answer = kTensors + checkpoint::safetensors_bytes(read());
  } catch (const UserError& e) {
    answer = kError + std::string(e.what());
  } catch (const std::exception&) {
    answer = kError + std::string("it is damaged");
  }
  ::_exit(write_all(out, answer) ? 0 : 1);
}

}  // namespace

checkpoint::NamedTensors read_guarded(const std::function<checkpoint::NamedTensors()>& read,
                                      const std::string& origin) {
  int ends[2];
  if (::pipe(ends) != 0) fail(origin, ": cannot be read: no pipe to its reader");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    work(read, ends[1]);
  }
  ::close(ends[1]);
  std::string answer = child > 0 ? read_all(ends[0]) : "";
  ::close(ends[0]);
  if (child < 0) fail(origin, ": cannot be read: no process for its reader");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty())
    fail(origin, ": is damaged: its reader broke off");
  const std::string_view body = std::string_view(answer).substr(1);
  if (answer[0] == kError) fail(origin, ": ", body);
  return checkpoint::parse_safetensors(body, origin);
}

}  // namespace octet::weights

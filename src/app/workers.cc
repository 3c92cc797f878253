#include "app/workers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "base/log.h"
#include "base/signals.h"

namespace octet::app {
namespace {

using Clock = std::chrono::steady_clock;

// The arguments of this process, as it was started.
std::vector<std::string> own_arguments() {
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("/proc/self/cmdline cannot be read: ", std::strerror(errno));
  std::string text;
  char part[4096];
  for (ssize_t n; (n = ::read(file, part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(n));
  ::close(file);
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\0', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// A port that is open already, so that nobody else takes it before rank 0 comes to it.
struct Port {
  int descriptor = -1, number = 0;
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port() {
    if (descriptor >= 0) ::close(descriptor);
  }
  void open() {
    descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (descriptor < 0 || ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(descriptor, 128) != 0 || ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      fail("no port can be opened on this machine for the workers: ", std::strerror(errno));
    number = ntohs(address.sin_port);
  }
};

// The signals that the launcher waits for, instead of being interrupted by them.
class WaitedSignals {
 public:
  WaitedSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&set_, signal);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~WaitedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  WaitedSignals(const WaitedSignals&) = delete;
  WaitedSignals& operator=(const WaitedSignals&) = delete;

  const sigset_t& before() const { return before_; }
  // 0 when the time is over.
  int wait(std::chrono::milliseconds time) const {
    const timespec limit{time.count() / 1000, time.count() % 1000 * 1'000'000};
    const int signal = ::sigtimedwait(&set_, nullptr, &limit);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t set_, before_;
};

struct Failure {
  int local_rank = 0;
  int status = 0;  // of waitpid
  bool killed() const { return WIFSIGNALED(status); }
  bool stopped() const { return !killed() && WEXITSTATUS(status) > 128; }  // by a signal that it alone got
  ExitCode code() const { return killed() ? ExitCode::kFailed : static_cast<ExitCode>(WEXITSTATUS(status)); }
};

class Attempt {
 public:
  Attempt(const WorkersOptions& options, const WaitedSignals& signals, int number)
      : options_(options), signals_(signals), number_(number) {}
  ~Attempt() { end_all(); }

  // Nothing: all were done.
  std::optional<Failure> run() {
    start();
    std::optional<Clock::time_point> deadline;
    while (!running_.empty()) {
      const int signal = signals_.wait(std::chrono::milliseconds(200));
      if (signal != 0 && signal != SIGCHLD) pass_on(signal);
      collect();
      if (failure_ && !deadline) deadline = Clock::now() + options_.grace;
      if (deadline && Clock::now() > *deadline) end_all();
    }
    return failure_;
  }
  int stop_signal() const { return stop_signal_; }  // that was passed on; 0: none

 private:
  const LocalWorkers& workers() const { return options_.workers; }
  int rank_of(int local) const { return workers().node * workers().workers + local; }

  void start() {
    const std::vector<std::string> arguments = own_arguments();
    Port port;
    if (workers().nodes == 1) port.open();
    for (int local = 0; local < workers().workers; ++local) {
      const pid_t parent = ::getpid(), child = ::fork();
      if (child < 0) fail("worker ", local, " cannot be started: ", std::strerror(errno));
      if (child == 0) become_worker(arguments, port, local, parent);
      running_[child] = local;
    }
  }

  [[noreturn]] void become_worker(const std::vector<std::string>& arguments, const Port& port, int local,
                                  pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::setpgid(0, 0);  // Ctrl-C reaches the launcher alone, which passes it on
    const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
    set("OCTET_WORKER", "1");
    set("RANK", std::to_string(rank_of(local)));
    set("WORLD_SIZE", std::to_string(workers().workers * workers().nodes));
    set("LOCAL_RANK", std::to_string(local));
    set("LOCAL_WORLD_SIZE", std::to_string(workers().workers));
    set("MASTER_ADDR", workers().master);
    set("MASTER_PORT", std::to_string(port.descriptor >= 0 ? port.number : workers().port));
    set("TORCHELASTIC_RESTART_COUNT", std::to_string(number_));
    ::unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    if (port.descriptor >= 0 && local == 0)
      set("OCTET_LISTENING", std::to_string(port.descriptor));
    else if (port.descriptor >= 0)
      ::close(port.descriptor);
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    ::sigprocmask(SIG_SETMASK, &signals_.before(), nullptr);
    ::execv("/proc/self/exe", pointers.data());
    ::_exit(1);
  }

  void pass_on(int signal) {
    if (stop_signal_ != 0) return end_all();
    stop_signal_ = signal;
    for (const auto& [process, local] : running_) ::kill(process, signal);
  }

  void collect() {
    int status = 0;
    for (pid_t process; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto worker = running_.find(process);
      if (worker == running_.end()) continue;
      const Failure end{worker->second, status};
      running_.erase(worker);
      if (status != 0 && (!failure_ || (end.killed() && !failure_->killed() && !ended_))) failure_ = end;
    }
  }

  void end_all() {
    ended_ = true;
    for (const auto& [process, local] : running_) ::kill(process, SIGKILL);
    for (int status = 0; !running_.empty();) {
      const pid_t process = ::waitpid(-1, &status, 0);
      if (process < 0 && errno != EINTR) break;
      running_.erase(process);
    }
  }

  const WorkersOptions& options_;
  const WaitedSignals& signals_;
  const int number_;
  std::map<pid_t, int> running_;  // local ranks by process
  std::optional<Failure> failure_;
  int stop_signal_ = 0;
  bool ended_ = false;
};

std::string what_happened(const Failure& failure, const LocalWorkers& workers) {
  const std::string who = str("worker ", failure.local_rank, " of ", workers.workers);
  if (!failure.killed()) return str(who, " ended with exit code ", static_cast<int>(failure.code()));
  return str(who, " was killed by signal ", WTERMSIG(failure.status), " (", ::strsignal(WTERMSIG(failure.status)), ")");
}

}  // namespace

ExitCode run_workers(const WorkersOptions& options) {
  const WaitedSignals signals;
  for (int64_t restarts = 0;; ++restarts) {
    Attempt attempt(options, signals, static_cast<int>(restarts));
    const std::optional<Failure> failure = attempt.run();
    if (!failure) return ExitCode::kDone;
    if (attempt.stop_signal() != 0) return stopped_by(attempt.stop_signal());
    const bool can_be_mended = failure->killed() || failure->code() == ExitCode::kFailed || failure->stopped();
    if (can_be_mended && restarts < options.max_restarts) {
      log_warning(what_happened(*failure, options.workers), "; starting all anew from the last checkpoint (restart ",
                  restarts + 1, " of ", options.max_restarts, ")");
      continue;
    }
    if (failure->killed())
      fail(what_happened(*failure, options.workers), "; the same command goes on from the last checkpoint",
           options.max_restarts > 0 ? "" : ", and --max-restarts does so by itself");
    return failure->code();
  }
}

}  // namespace octet::app

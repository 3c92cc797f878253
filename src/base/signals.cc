#include "base/signals.h"

#include <unistd.h>

#include <csignal>

#include "base/temporary_path.h"

namespace octet {
namespace {

volatile std::sig_atomic_t requested = 0;

void end(int signal) {
  end_by_signal(signal);
}

void remember(int signal) {
  if (requested != 0) end(signal);
  requested = signal;
}

void install(void (*handler)(int), int signal) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // interrupted reads and writes go on
  sigaction(signal, &action, nullptr);
}

void install(void (*handler)(int)) {
  install(handler, SIGINT);
  install(handler, SIGTERM);
}

}  // namespace

void install_end_handler() {
  install(end);
}

void install_stop_handler() {
  install(remember);
  install(remember, SIGUSR1);
}

void end_by_signal(int signal) {
  remove_temporary_files_at_exit();
  // The default effect, so that who waits sees a process that the signal ended.
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);  // the first process of a container
}

bool stop_requested() {
  return requested != 0;
}

int stop_signal() {
  return requested;
}

const char* stop_signal_name() {
  if (requested == SIGINT) return "SIGINT";
  if (requested == SIGTERM) return "SIGTERM";
  if (requested == SIGUSR1) return "SIGUSR1";
  return "";
}

}  // namespace octet

#include "base/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "base/error.h"

namespace octet {
namespace {

int reserved = -1;  // a descriptor of what standard output was

}  // namespace

void reserve_standard_output() {
  if (reserved >= 0) return;
  std::cout.flush();
  std::fflush(stdout);
  reserved = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  require(reserved >= 0, "standard output cannot be written: ", std::strerror(errno));
  require(::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0, "standard error cannot be written: ", std::strerror(errno));
}

void restore_standard_output() {
  if (reserved < 0) return;
  std::cout.flush();
  std::fflush(stdout);
  require(::dup2(reserved, STDOUT_FILENO) >= 0, "standard output cannot be written: ", std::strerror(errno));
  ::close(reserved);
  reserved = -1;
}

void write_result(std::string_view text) {
  if (reserved < 0) {
    std::cout << text << std::flush;
    require(std::cout.good(), "standard output cannot be written");
    return;
  }
  while (!text.empty()) {
    const ssize_t written = ::write(reserved, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    require(written > 0, "standard output cannot be written: ", std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace octet

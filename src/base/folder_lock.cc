#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace octet {
namespace {

// The holder writes its process id into the file; it may not have come to that yet.
std::string holder(int file) {
  char text[32] = {};
  const ssize_t n = ::pread(file, text, sizeof text - 1, 0);
  long id = 0;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9' && id < 100'000'000; ++i)
    id = 10 * id + (text[i] - '0');
  return id > 0 ? str("process ", id) : "another process";
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file_ < 0) fail(path.string(), ": cannot be created: ", std::strerror(errno));
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const std::string other = holder(file_);
    if (error != EWOULDBLOCK) {
      log_warning(folder.string(), ": cannot be locked (", std::strerror(error),
                  "); see to it that no other process writes there");
      return;
    }
    ::close(file_);
    fail_usage(folder.string(), ": ", other,
               " is at work there; wait until it has ended, or name another results folder");
  }
  const std::string id = str(::getpid(), "\n");
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, id.data(), id.size(), 0) < 0)
    log_debug(path.string(),
              ": cannot be written: ", std::strerror(errno));  // a full disk; the lock holds all the same
}

FolderLock::~FolderLock() {
  ::close(file_);
}

}  // namespace octet

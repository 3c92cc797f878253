#include "base/destination.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "base/error.h"

namespace octet {
namespace fs = std::filesystem;
namespace {

// The number N of /proc/self/fd/N, by whatever path the folder is reached; -1 for other links. What such a link says
// ("pipe:[1234]") is no path, and where it is one, the file behind it must be written by the descriptor that is open.
int own_descriptor(const fs::path& link) {
  std::error_code error;
  const fs::path folder = fs::canonical(link.parent_path().empty() ? "." : link.parent_path(), error);
  if (error || folder != fs::canonical("/proc/self/fd", error) || error) return -1;
  const std::string name = link.filename().string();
  int number = -1;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  return bad == std::errc() && end == name.data() + name.size() ? number : -1;
}

}  // namespace

std::string file_type_name(unsigned mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a folder";
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFBLK:
      return "a block device";
    case S_IFCHR:
      return "a device";
    default:
      return "a file";
  }
}

Destination find_destination(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as Linux allows
  Destination destination{.path = path};
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(destination.path, error)); ++links) {
    if (links == kMostLinks) fail(path.string(), ": its symbolic links go round in a circle");
    destination.descriptor = own_descriptor(destination.path);
    if (destination.descriptor >= 0) break;
    const fs::path target = fs::read_symlink(destination.path, error);
    if (error) fail(path.string(), ": the symbolic link cannot be read: ", error.message());
    destination.path = destination.path.parent_path() / target;
  }
  if (destination.descriptor >= 0) {
    destination.kind = Destination::kDirect;
    destination.exists = true;
    return destination;
  }
  struct stat info {};
  destination.exists = ::stat(destination.path.c_str(), &info) == 0;
  if (!destination.exists || S_ISREG(info.st_mode)) return destination;
  if (S_ISDIR(info.st_mode)) {
    destination.kind = Destination::kFolder;
  } else {
    if (S_ISBLK(info.st_mode) || S_ISSOCK(info.st_mode))
      fail_usage(path.string(), ": is ", file_type_name(info.st_mode), ", which Octet does not write to; name a file");
    destination.kind = Destination::kDirect;
  }
  return destination;
}

int open_directly(const fs::path& path, const Destination& destination) {
  int descriptor;
  if (destination.descriptor >= 0) {
    std::cout.flush();  // what was printed before comes first
    std::fflush(stdout);
    descriptor = ::fcntl(destination.descriptor, F_DUPFD_CLOEXEC, 3);
  } else {
    do descriptor = ::open(destination.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    while (descriptor < 0 && errno == EINTR);
  }
  if (descriptor < 0) fail(path.string(), ": cannot be opened for writing: ", std::strerror(errno));
  return descriptor;
}

}  // namespace octet

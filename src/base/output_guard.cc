#include "base/output_guard.h"

#include <sys/stat.h>

#include <mutex>
#include <vector>

#include "base/destination.h"
#include "base/error.h"

namespace octet {
namespace fs = std::filesystem;
namespace {

struct Output {
  fs::path path, resolved;
  std::string flag;

  // Looks anew each time: the number of a file that was removed goes to the next one that is made.
  bool is(const struct stat& info) const {
    struct stat now {};
    return ::stat(path.c_str(), &now) == 0 && now.st_dev == info.st_dev && now.st_ino == info.st_ino;
  }
};

std::mutex mutex;

std::vector<Output>& outputs() {
  static std::vector<Output> all;
  return all;
}

}  // namespace

void guard_output(const fs::path& path, const std::string& flag) {
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) return;
  std::error_code ignored;
  const fs::path resolved = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
  const std::lock_guard lock(mutex);
  for (const Output& other : outputs()) {
    if (other.resolved != resolved && !(exists && other.is(info))) continue;
    if (other.flag == flag) return;
    fail_usage(flag, " ", path.string(), ": is also the output of ", other.flag, "; name another file for one of them");
  }
  outputs().push_back({path, resolved, flag});
}

void require_no_output(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) require_no_output(path, info);
}

void require_no_output(const fs::path& path, const struct stat& info) {
  const std::lock_guard lock(mutex);
  for (const Output& output : outputs())
    if (output.is(info))
      fail_usage(output.flag, " ", output.path.string(), ": is the same file as the input ", path.string(),
                 ", which it would replace; name another output");
}

void require_file(const std::string& path, const std::string& flag) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) fail_usage(flag, " ", path, ": there is no such file");
  if (!S_ISREG(info.st_mode)) fail_usage(flag, " ", path, ": is ", file_type_name(info.st_mode), ", expected a file");
  require_no_output(path);
}

}  // namespace octet

#include "base/temporary_path.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

#include "base/error.h"

namespace octet {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMark = ".tmp-";
constexpr size_t kRandomDigits = 16, kLongestName = 255;

// The name of a file being written, for the signal handler.
struct Slot {
  enum State { kFree, kClaimed, kNamed };
  std::atomic<int> state{kFree};
  char name[4096];
};
std::array<Slot, 16> files_in_work;

// -1: all are taken, or the name is too long; the file is left to the next run then.
int claim_slot(const fs::path& path) {
  for (size_t i = 0; i < files_in_work.size(); ++i) {
    Slot& slot = files_in_work[i];
    int state = Slot::kFree;
    if (path.native().size() >= sizeof slot.name) return -1;
    if (!slot.state.compare_exchange_strong(state, Slot::kClaimed)) continue;
    std::memcpy(slot.name, path.c_str(), path.native().size() + 1);
    slot.state = Slot::kNamed;
    return static_cast<int>(i);
  }
  return -1;
}

std::string random_digits() {
  static thread_local std::mt19937_64 random{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), static_cast<unsigned>(::getpid())};
    return std::mt19937_64(seed);
  }()};
  std::string out;
  uint64_t value = random();
  for (size_t i = 0; i < kRandomDigits; ++i, value >>= 4) out += "0123456789abcdef"[value & 15];
  return out;
}

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

// What comes before the digits in the names of one output.
std::string stem_of(const fs::path& output) {
  const std::string name = output.filename().string();
  return str(".", name.substr(0, kLongestName - 1 - kMark.size() - kRandomDigits), kMark);
}

// The digits, or process number and counter with a dash, which older versions used.
bool is_tail(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

bool take_lock(int descriptor, int flags) {
  while (::flock(descriptor, LOCK_EX | flags) != 0)
    if (errno != EINTR) return false;
  return true;
}

// Whether `path` still names what is open. Between making a file and locking it another process may take it for a
// left-over; between opening a left-over and locking it, another may remove it.
bool still_named(const fs::path& path, int descriptor) {
  struct stat open_one {
  }, named{};
  return ::fstat(descriptor, &open_one) == 0 && ::lstat(path.c_str(), &named) == 0 && open_one.st_dev == named.st_dev &&
         open_one.st_ino == named.st_ino;
}

void remove_if_abandoned(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || info.st_uid != ::geteuid()) return;
  const bool folder = S_ISDIR(info.st_mode);
  if (!folder && !S_ISREG(info.st_mode)) return;
  // Some network file systems lock only what is open for writing.
  const int descriptor =
      ::open(path.c_str(), (folder ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  if (take_lock(descriptor, LOCK_NB) && still_named(path, descriptor)) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  ::close(descriptor);
}

// Those whose name begins with `stem`; an empty stem stands for any.
void remove_leftovers(const fs::path& folder, std::string_view stem) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.empty() || name[0] != '.') continue;
    const size_t tail = stem.empty()             ? name.rfind(kMark)
                        : name.starts_with(stem) ? stem.size() - kMark.size()
                                                 : std::string::npos;
    if (tail == std::string::npos || tail == 0 || !is_tail(std::string_view(name).substr(tail + kMark.size())))
      continue;
    remove_if_abandoned(entries->path());
  }
}

}  // namespace

TemporaryPath::TemporaryPath(const fs::path& output, Kind kind) {
  remove_leftovers(folder_of(output), stem_of(output));
  make(output, kind);
  if (kind == Kind::kFile) slot_ = claim_slot(path_);
}

void TemporaryPath::make(const fs::path& output, Kind kind) {
  constexpr int kTries = 100;
  int error = EEXIST;
  for (int i = 0; i < kTries; ++i) {
    path_ = output.parent_path() / (stem_of(output) + random_digits());
    if (kind == Kind::kFile) {
      descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    } else if (::mkdir(path_.c_str(), 0777) == 0) {
      descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (descriptor_ < 0 && errno == ENOENT) continue;  // taken for a left-over before it was locked
    }
    if (descriptor_ < 0) {
      error = errno;
      if (error == EEXIST) continue;
      break;
    }
    take_lock(descriptor_, 0);  // where it fails there are no locks, and nobody removes what is not locked
    if (still_named(path_, descriptor_)) return;
    ::close(descriptor_);
    descriptor_ = -1;
  }
  fail(output.string(), ": cannot be created: ", std::strerror(error), "; the file was not written");
}

TemporaryPath::~TemporaryPath() {
  if (!path_.empty()) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  if (slot_ >= 0) files_in_work[static_cast<size_t>(slot_)].state = Slot::kFree;
  if (descriptor_ >= 0) ::close(descriptor_);
}

int TemporaryPath::rename_to(const fs::path& target) {
  if (::rename(path_.c_str(), target.c_str()) == 0) {
    path_.clear();
    return 0;
  }
  // A folder takes the place only of an empty one: exchange the two, and let the destructor remove the old one.
  if (errno != ENOTEMPTY && errno != EEXIST) return errno;
#ifdef SYS_renameat2
  constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE
  if (::syscall(SYS_renameat2, AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), kExchange) == 0) return 0;
#endif
  const fs::path old = target.parent_path() / (stem_of(target) + random_digits());
  if (::rename(target.c_str(), old.c_str()) != 0) return errno;
  const int error = ::rename(path_.c_str(), target.c_str()) == 0 ? 0 : errno;
  if (error != 0) {
    ::rename(old.c_str(), target.c_str());
    return error;
  }
  path_ = old;
  return 0;
}

void remove_leftovers(const fs::path& folder) {
  remove_leftovers(folder, {});
}

void remove_temporary_files_at_exit() noexcept {
  for (const Slot& slot : files_in_work)
    if (slot.state == Slot::kNamed) ::unlink(slot.name);
}

}  // namespace octet

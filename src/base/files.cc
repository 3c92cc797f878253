#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/destination.h"
#include "base/error.h"
#include "base/input_file.h"
#include "base/temporary_path.h"

namespace octet {
namespace fs = std::filesystem;
namespace {

void sync_path(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

// 0, or errno.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

void write_directly(const fs::path& path, int fd, std::span<const std::string_view> pieces) {
  int error = 0;
  for (const std::string_view piece : pieces)
    if (error == 0) error = write_all(fd, piece);
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error != 0) fail(path.string(), ": writing failed: ", std::strerror(error));
}

}  // namespace

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  write_file_atomically(path, std::span(&bytes, 1));
}

void write_file_atomically(const fs::path& path, std::span<const std::string_view> pieces) {
  const Destination destination = find_destination(path);
  if (destination.kind == Destination::kFolder) fail(path.string(), ": is a folder, expected a file");
  if (destination.kind == Destination::kDirect) return write_directly(path, open_directly(path, destination), pieces);
  TemporaryPath temporary(destination.path, TemporaryPath::Kind::kFile);
  const auto give_up = [&](const char* what, int error) {
    fail(path.string(), ": ", what, ": ", std::strerror(error), "; the file was not written");
  };
  for (const std::string_view piece : pieces)
    if (const int error = write_all(temporary.descriptor(), piece)) give_up("writing failed", error);
  if (::fsync(temporary.descriptor()) != 0 && errno != EINVAL && errno != EROFS) give_up("syncing failed", errno);
  if (const int error = temporary.rename_to(destination.path)) give_up("cannot be renamed into place", error);
  sync_path(parent_of(destination.path), O_RDONLY | O_DIRECTORY);
}

void write_directory_atomically(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const Destination destination = find_destination(path.has_filename() ? path : path.parent_path());
  if (destination.exists && destination.kind != Destination::kFolder)
    fail(path.string(), ": is a file, expected a folder; move it away");
  const fs::path& target = destination.path;
  try {
    fs::create_directories(parent_of(target));
    TemporaryPath temporary(target, TemporaryPath::Kind::kFolder);
    fill(temporary.path());
    for (const auto& entry : fs::recursive_directory_iterator(temporary.path()))
      if (entry.is_regular_file()) sync_path(entry.path(), O_RDONLY);
    sync_path(temporary.path(), O_RDONLY | O_DIRECTORY);
    if (const int error = temporary.rename_to(target))
      fail(path.string(), ": cannot be renamed into place: ", std::strerror(error));
    sync_path(parent_of(target), O_RDONLY | O_DIRECTORY);
  } catch (const fs::filesystem_error& e) {
    fail(path.string(), ": could not be written: ", e.code().message());
  }
}

int open_for_appending(const fs::path& path, const std::string& what) {
  const Destination destination = find_destination(path);
  if (destination.kind == Destination::kFolder) fail(path.string(), ": ", what, " cannot be opened: is a folder");
  if (destination.kind == Destination::kDirect) return open_directly(path, destination);
  const int fd = ::open(destination.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) fail(path.string(), ": ", what, " cannot be opened: ", std::strerror(errno));
  return fd;
}

void remove_output(const fs::path& path) {
  const Destination destination = find_destination(path);
  std::error_code error;
  if (destination.kind == Destination::kFile) {
    fs::remove(destination.path, error);
  } else if (destination.kind == Destination::kFolder) {
    for (const auto& entry : fs::directory_iterator(destination.path, error)) {
      fs::remove_all(entry.path(), error);
      if (error) break;
    }
  }
  if (error) fail(path.string(), ": cannot be removed: ", error.message());
}

void require_writable_output(const fs::path& path, bool force) {
  const Destination destination = find_destination(path);
  if (destination.kind == Destination::kFolder) fail_usage(path.string(), ": is a folder, expected a file");
  if (destination.kind == Destination::kDirect) return;
  if (!force && destination.exists)
    fail_usage(path.string(), ": exists already; name another output or give --force to replace it");
  const fs::path folder = parent_of(destination.path);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    fail_usage(path.string(), ": the folder ", folder.string(), " does not exist");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    fail(path.string(), ": the folder ", folder.string(), " cannot be written: ", std::strerror(errno));
}

void make_results_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(path.string(), ": the results directory cannot be made: ", error.message());
  if (!fs::is_directory(path)) fail(path.string(), ": is a file, expected a results directory");
  try {
    TemporaryPath(path / "probe", TemporaryPath::Kind::kFile);
  } catch (const UserError& e) {
    fail(path.string(), ": the results directory cannot be written: ", e.what());
  }
}

MappedFile::MappedFile(const fs::path& path) : MappedFile(path, InputFile(path)) {}

MappedFile::MappedFile(const fs::path& path, const InputFile& file) {
  file.require_regular();
  size_ = static_cast<size_t>(file.info().st_size);
  if (size_ == 0) return;
  reserved_ = round_up(size_) + round_up(1);
  void* data = ::mmap(nullptr, reserved_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (data == MAP_FAILED) fail(path.string(), ": cannot be mapped into memory: ", std::strerror(errno));
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), reserved_);
}

size_t MappedFile::round_down(size_t offset) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return offset / page * page;
}

size_t MappedFile::round_up(size_t offset) {
  return round_down(offset + static_cast<size_t>(::sysconf(_SC_PAGESIZE)) - 1);
}

void MappedFile::copy_pages(size_t begin, size_t end) {
  if (begin >= end) return;
  OCTET_CHECK(data_ != nullptr && end <= reserved_ && round_down(begin) == begin && round_down(end) == end);
  void* const copy = ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) throw std::bad_alloc();
  if (begin < size_) std::memcpy(copy, data_ + begin, std::min(end, size_) - begin);
  if (::mremap(copy, end - begin, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED, const_cast<std::byte*>(data_ + begin)) !=
      MAP_FAILED)
    return;
  const int error = errno;
  ::munmap(copy, end - begin);
  fail("a file cannot be copied into memory: ", std::strerror(error));
}

void MappedFile::expect_sparse_reads() const {
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_RANDOM);
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (begin >= end) return;
  void* const pages = reinterpret_cast<void*>(begin);
  // Without this, reading a neighbor would map them again: where the page cache has huge pages, up to 2 MiB at a time.
#ifdef MADV_NOHUGEPAGE
  ::madvise(pages, end - begin, MADV_NOHUGEPAGE);
#endif
  ::madvise(pages, end - begin, MADV_DONTNEED);
}

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}
uint64_t hash64(std::string_view text, uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::string hex64(uint64_t value) {
  static const char* digits = "0123456789abcdef";
  std::string out(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) out[static_cast<size_t>(i)] = digits[value & 15];
  return out;
}

}  // namespace octet

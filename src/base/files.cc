#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"

namespace octet {
namespace fs = std::filesystem;
namespace {

// A name beside `path` that no other process or thread uses.
fs::path temporary_beside(const fs::path& path) {
  static std::atomic<int> counter{0};
  fs::path plain = path;
  if (!plain.has_filename()) plain = plain.parent_path();
  return plain.parent_path() / str(".", plain.filename().string(), ".tmp-", ::getpid(), "-", counter++);
}

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

}  // namespace

std::string read_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) fail(path.string(), ": is a directory, expected a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path.string(), ": cannot be opened: ", std::strerror(errno));
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) fail(path.string(), ": reading failed: ", std::strerror(errno));
  return bytes;
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  write_file_atomically(path, std::span(&bytes, 1));
}

void write_file_atomically(const fs::path& path, std::span<const std::string_view> pieces) {
  const fs::path temporary = temporary_beside(path);
  const auto give_up = [&](const char* what, int error, int fd) {
    if (fd >= 0) ::close(fd);
    ::unlink(temporary.c_str());
    fail(path.string(), ": ", what, ": ", std::strerror(error), "; the file was not written");
  };
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) give_up("cannot be created", errno, -1);
  for (std::string_view rest : pieces)
    while (!rest.empty()) {
      const ssize_t n = ::write(fd, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) give_up("writing failed", errno, fd);
      rest.remove_prefix(static_cast<size_t>(n));
    }
  if (::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) give_up("syncing failed", errno, fd);
  if (::close(fd) != 0) give_up("closing failed", errno, -1);
  if (::rename(temporary.c_str(), path.c_str()) != 0) give_up("cannot be renamed into place", errno, -1);
  sync_path(parent_of(path), O_RDONLY | O_DIRECTORY);
}

void write_directory_atomically(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const fs::path temporary = temporary_beside(path);
  std::error_code error;
  fs::create_directories(temporary, error);
  if (error) fail(temporary.string(), ": cannot be created: ", error.message());
  try {
    fill(temporary);
    for (const auto& entry : fs::recursive_directory_iterator(temporary))
      if (entry.is_regular_file()) sync_path(entry.path(), O_RDONLY);
    sync_path(temporary, O_RDONLY | O_DIRECTORY);
    // A directory cannot be renamed over one that holds files: move the old one aside first.
    fs::path old;
    if (fs::exists(path)) {
      old = temporary_beside(path);
      fs::rename(path, old);
    }
    fs::rename(temporary, path);
    if (!old.empty()) fs::remove_all(old);
    sync_path(parent_of(path), O_RDONLY | O_DIRECTORY);
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(temporary, error);
    fail(path.string(), ": could not be written: ", e.code().message());
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
}

void require_writable_output(const fs::path& path, bool force) {
  std::error_code ignored;
  if (!force && fs::exists(path, ignored))
    fail_usage(path.string(), ": exists already; name another output or give --force to replace it");
}

void make_results_directory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(path.string(), ": the results directory cannot be made: ", error.message());
  if (!fs::is_directory(path)) fail(path.string(), ": is a file, expected a results directory");
  const fs::path probe = temporary_beside(path / "probe");
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) fail(path.string(), ": the results directory cannot be written: ", std::strerror(errno));
  ::close(fd);
  ::unlink(probe.c_str());
}

MappedFile::MappedFile(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path.string(), ": cannot be opened: ", std::strerror(errno));
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    fail(path.string(), ": is not a regular file");
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ > 0) {
    void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (data == MAP_FAILED) fail(path.string(), ": cannot be mapped into memory: ", std::strerror(error));
    data_ = static_cast<const std::byte*>(data);
  } else {
    ::close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (begin >= end) return;
  void* const pages = reinterpret_cast<void*>(begin);
  // Without this, reading a neighbour would map them again: where the page cache has huge pages, up to 2 MiB at a time.
#ifdef MADV_NOHUGEPAGE
  ::madvise(pages, end - begin, MADV_NOHUGEPAGE);
#endif
  ::madvise(pages, end - begin, MADV_DONTNEED);
}

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}
uint64_t hash64(std::string_view text, uint64_t seed) { return XXH3_64bits_withSeed(text.data(), text.size(), seed); }

std::string hex64(uint64_t value) {
  static const char* digits = "0123456789abcdef";
  std::string out(16, '0');
  for (int i = 15; i >= 0; i--, value >>= 4) out[static_cast<size_t>(i)] = digits[value & 15];
  return out;
}

}  // namespace octet

#include "base/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "base/destination.h"
#include "base/error.h"
#include "base/files.h"
#include "base/output_guard.h"

namespace octet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kChunk = size_t{1} << 16;

bool is_null_device(const struct stat& info) {
  return S_ISCHR(info.st_mode) && ::major(info.st_rdev) == 1 && ::minor(info.st_rdev) == 3;
}

std::string read_regular(const InputFile& file) {
  std::string bytes;
  // The size is a hint only: files of /proc have none, and files may grow.
  bytes.resize(std::max<size_t>(static_cast<size_t>(file.info().st_size) + 1, 4096));
  size_t done = 0;
  for (;;) {
    if (done == bytes.size()) bytes.resize(bytes.size() + std::max(bytes.size() / 2, kChunk));
    const size_t n = file.read(std::span(bytes).subspan(done));
    if (n == 0) break;
    done += n;
  }
  bytes.resize(done);
  return bytes;
}

std::string read_pipe(const fs::path& path, const InputFile& file) {
  using namespace std::chrono;
  constexpr size_t kMostBytes = size_t{16} << 20;
  constexpr auto kForWriter = seconds(5), kForBytes = seconds(60);
  std::string bytes;
  auto last = steady_clock::now();
  char chunk[4096];
  for (;;) {
    const ssize_t n = ::read(file.descriptor(), chunk, sizeof chunk);
    if (n > 0) {
      bytes.append(chunk, static_cast<size_t>(n));
      if (bytes.size() > kMostBytes) fail(path.string(), ": the pipe brings more than 16 MiB, too much for a text");
      last = steady_clock::now();
      continue;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) fail(path.string(), ": reading failed: ", std::strerror(errno));
    if (n == 0 && !bytes.empty()) return bytes;
    // 0 bytes: nobody has the other end open. A writer that came and went without a word leaves a hang-up.
    const bool writer = n < 0;
    const auto left = (writer ? kForBytes : kForWriter) - (steady_clock::now() - last);
    if (left <= left.zero())
      fail(path.string(),
           writer ? ": is a pipe whose writer has sent nothing for a minute" : ": is a pipe that nobody writes to");
    pollfd wait{.fd = file.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, static_cast<int>(duration_cast<milliseconds>(left).count()) + 1);
    if ((wait.revents & POLLHUP) != 0 && (wait.revents & POLLIN) == 0) return bytes;
  }
}

}  // namespace

InputFile::InputFile(const fs::path& path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) fail(path.string(), ": cannot be opened: ", std::strerror(errno));
  try {
    if (::fstat(descriptor_, &info_) != 0) fail(path.string(), ": cannot be opened: ", std::strerror(errno));
    if (S_ISDIR(info_.st_mode)) fail(path.string(), ": is a directory, expected a file");
    require_no_output(path, info_);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

size_t InputFile::read(std::span<char> out) const {
  ssize_t n;
  do n = ::read(descriptor_, out.data(), out.size());
  while (n < 0 && errno == EINTR);
  if (n < 0) fail(path_.string(), ": reading failed: ", std::strerror(errno));
  return static_cast<size_t>(n);
}

size_t InputFile::read_at(uint64_t offset, std::span<char> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_.string(), ": reading failed: ", std::strerror(errno));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

bool InputFile::unchanged() const {
  struct stat now {};
  return ::fstat(descriptor_, &now) == 0 && now.st_size == info_.st_size &&
         now.st_mtim.tv_sec == info_.st_mtim.tv_sec && now.st_mtim.tv_nsec == info_.st_mtim.tv_nsec;
}

void InputFile::require_regular() const {
  if (!S_ISREG(info_.st_mode))
    fail(path_.string(), ": is ", file_type_name(info_.st_mode),
         ", expected a regular file; copy its bytes to one first");
}

std::string read_file(const fs::path& path) {
  const InputFile file(path);
  file.require_regular();
  return read_regular(file);
}

std::string read_file_or_pipe(const fs::path& path) {
  const InputFile file(path);
  if (S_ISFIFO(file.info().st_mode)) return read_pipe(path, file);
  if (is_null_device(file.info())) return {};
  file.require_regular();
  return read_regular(file);
}

}  // namespace octet

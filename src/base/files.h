// Files: whole reads, memory maps, and writes that never leave a half-written file under its final name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

class InputFile;

// The whole file. UserError when it cannot be read, is no regular file, or is an output of this command.
std::string read_file(const std::filesystem::path& path);
// The same for short texts, which may also come from a pipe (`-e <(make_spec)`, /dev/stdin) or be /dev/null. A pipe
// that nobody opens for writing within seconds, that stays silent for a minute or brings more than 16 MiB is a
// UserError.
std::string read_file_or_pipe(const std::filesystem::path& path);

// Writes `bytes` to a temporary name beside `path` (base/temporary_path.h), syncs, renames. Either the old or the new
// content is there, never a part. UserError (with the reason: disk full, no permission ...) leaves nothing behind.
// Where `path` is a symbolic link, the file that it points to is replaced and the link stays. A character device, a
// pipe or a name of an own descriptor (/dev/stdout) is written directly and stays what it is; a folder, a block device
// or a socket is refused.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
// The same for bytes that lie in several places, one piece behind the other.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces);

// The same for a whole directory: `fill` writes into a temporary directory beside `path`; every file in it is synced,
// then the directory is renamed to `path`, replacing one that is there. If `fill` throws, nothing is left behind. Where
// `path` is a link, the folder that it points to is replaced; a file is refused.
void write_directory_atomically(const std::filesystem::path& path,
                                const std::function<void(const std::filesystem::path& temporary)>& fill);

// A descriptor that appends to the file, which is made where it is missing. What stands at `path` stays: links, devices
// and pipes (with a reader) are written through. UserError, with `what` ("the status log") in it.
int open_for_appending(const std::filesystem::path& path, const std::string& what);

// Removes an output of an earlier run: a file; what is in a folder; what a link points to. Devices and pipes stay.
void remove_output(const std::filesystem::path& path);

// UserError (exit 2) when `path` is nothing that can be written: it is a folder, its folder does not exist, or it
// exists and `force` is false, as outputs are never overwritten unasked. Devices and pipes need no `force`.
void require_writable_output(const std::filesystem::path& path, bool force);

// Creates the directory and its parents and checks that files can be made in it; UserError otherwise.
void make_results_directory(const std::filesystem::path& path);

// A file mapped read-only for the lifetime of the object.
class MappedFile {
 public:
  // UserError when it cannot be opened, is no regular file, or is an output of this command.
  explicit MappedFile(const std::filesystem::path& path);
  // A page of room is kept behind the end of the file, to be made readable by copy_pages.
  MappedFile(const std::filesystem::path& path, const InputFile& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Says that few bytes are read, here and there, so that no more than their pages is fetched.
  void expect_sparse_reads() const;
  // Gives back the memory of the whole pages within `part`; reading them again brings them back from the file.
  void release(std::span<const std::byte> part) const;
  // Replaces pages by copies in memory, at the same place: whatever happens to the file, they stay. The bounds are
  // offsets and multiples of a page; beyond the end of the file, where one further page may be named, there are zeros.
  void copy_pages(size_t begin, size_t end);
  static size_t round_up(size_t offset);  // to pages
  static size_t round_down(size_t offset);

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0, reserved_ = 0;
};

// 64-bit content hash (XXH3), for checksums and provenance; not cryptographic.
uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t hash64(std::string_view text, uint64_t seed = 0);
// 16 lower-case hexadecimal digits.
std::string hex64(uint64_t value);

}  // namespace octet

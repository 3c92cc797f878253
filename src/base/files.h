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

// The whole file. UserError when it cannot be read.
std::string read_file(const std::filesystem::path& path);

// Writes `bytes` to a temporary name beside `path`, syncs, renames. Either the old or the new content is there, never a
// part. UserError (with the reason: disk full, no permission ...) leaves nothing behind.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
// The same for bytes that lie in several places, one piece behind the other.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces);

// The same for a whole directory: `fill` writes into a temporary directory beside `path`; every file in it is synced,
// then the directory is renamed to `path`, replacing one that is there. If `fill` throws, nothing is left behind.
void write_directory_atomically(const std::filesystem::path& path,
                                const std::function<void(const std::filesystem::path& temporary)>& fill);

// UserError (exit 2) when `path` exists and `force` is false: outputs are never overwritten unasked.
void require_writable_output(const std::filesystem::path& path, bool force);

// Creates the directory and its parents and checks that files can be made in it; UserError otherwise.
void make_results_directory(const std::filesystem::path& path);

// A file mapped read-only for the lifetime of the object.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // UserError when it cannot be opened
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Gives back the memory of the whole pages within `part`; reading them again brings them back from the file.
  void release(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// 64-bit content hash (XXH3), for checksums and provenance; not cryptographic.
uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t hash64(std::string_view text, uint64_t seed = 0);
// 16 lower-case hexadecimal digits.
std::string hex64(uint64_t value);

}  // namespace octet

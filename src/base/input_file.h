// Opening what is read: never waits for a pipe's writer or a device, and never reads what the command is to write.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <span>

namespace octet {

class InputFile {
 public:
  // UserError when it cannot be opened, is a folder, or is a guarded output (base/output_guard.h).
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int descriptor() const { return descriptor_; }  // for reading, does not block
  const struct stat& info() const { return info_; }
  // Fills `out` from its front with the next bytes and says how many they are; 0 at the end. UserError.
  size_t read(std::span<char> out) const;
  // The bytes from `offset` on, which fill `out` unless the file ends before; says how many they are. UserError.
  size_t read_at(uint64_t offset, std::span<char> out) const;
  // Whether nobody wrote to the file since it was opened, as far as its size and time of change tell.
  bool unchanged() const;
  // UserError for pipes, devices and sockets.
  void require_regular() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  struct stat info_ {};
};

}  // namespace octet

// Opening what is read: never waits for a pipe's writer or a device, and never reads what the command is to write.
#pragma once
#include <sys/stat.h>

#include <filesystem>

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
  // UserError for pipes, devices and sockets.
  void require_regular() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  struct stat info_ {};
};

}  // namespace octet

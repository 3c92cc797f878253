// Names that outputs have while they are written, beside their final ones: ".NAME.tmp-" and 16 random digits.
#pragma once
#include <filesystem>
#include <string>

namespace octet {

// A new, empty file or folder of such a name. Its maker holds a lock on it (flock) for as long as it lives, and locks
// end with the process that holds them: who can take the lock of a left-over knows that its writer is dead, also where
// the writer was on the other side of a container and process numbers say nothing. Making one removes the left-overs of
// the same output. A file system without locks keeps its left-overs.
class TemporaryPath {
 public:
  enum class Kind { kFile, kFolder };
  // UserError, naming `output`, when it cannot be made.
  TemporaryPath(const std::filesystem::path& output, Kind kind);
  ~TemporaryPath();  // removes what is still there under the temporary name, and lets go of the lock
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }  // of a file: open for writing
  // Takes the name `target`, replacing the file or folder that has it, in one step where the file system can exchange
  // two names. 0, or errno.
  int rename_to(const std::filesystem::path& target);

 private:
  void make(const std::filesystem::path& output, Kind kind);

  std::filesystem::path path_;
  int descriptor_ = -1;
  int slot_ = -1;
};

// Removes every left-over in a folder that only Octet writes to, whatever output it was of.
void remove_leftovers(const std::filesystem::path& folder);

// Removes the files that this process is writing under temporary names. For signal handlers: touches no memory but the
// names, takes no locks.
void remove_temporary_files_at_exit() noexcept;

}  // namespace octet

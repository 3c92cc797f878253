// One process at a time writes into a folder.
#pragma once
#include <filesystem>

namespace octet {

// Holds FOLDER/lock until it is destroyed or the process ends, however that ends. The file itself stays: removing it
// would let a third process lock a file that the second one still waits for.
class FolderLock {
 public:
  // UserError (exit 2) that names the folder and the process which holds it. On a file system without locks a warning
  // says that nothing keeps a second process out.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace octet

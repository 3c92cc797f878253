// Bytes that something wants to read from a file, and nobody else: where temporary files go (TMPDIR), in a folder of
// their own. That is locked for as long as this object lives; a file that is renamed into a temporary name would not
// be, and another process that makes the same one at that moment would take it for a left-over.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "base/temporary_path.h"

namespace octet {

class TemporaryFile {
 public:
  // `name`: of the file, with its ending. UserError where it cannot be written.
  TemporaryFile(const std::string& name, std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryPath folder_;
  std::filesystem::path path_;
};

}  // namespace octet

#include "base/temporary_file.h"

#include "base/files.h"

namespace octet {

TemporaryFile::TemporaryFile(const std::string& name, std::string_view bytes)
    : folder_(std::filesystem::temp_directory_path() / name, TemporaryPath::Kind::kFolder),
      path_(folder_.path() / name) {
  write_file_atomically(path_, bytes);
}

}  // namespace octet

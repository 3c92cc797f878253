#include "data/image_write.h"

#include "base/files.h"

namespace octet::data {

void write_png(const std::filesystem::path& path, const Image& image) {
  write_file_atomically(path, encode_png(image));
}

}  // namespace octet::data

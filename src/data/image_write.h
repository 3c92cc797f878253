// Pictures to files.
#pragma once
#include <filesystem>
#include <string>

#include "data/image.h"

namespace octet::data {

// PNG without loss. The same picture gives the same bytes with the same OpenCV.
std::string encode_png(const Image& image);
// Atomically (base/files.h). UserError where the file cannot be written.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace octet::data

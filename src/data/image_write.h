// Pictures to files.
#pragma once
#include <filesystem>

#include "data/png.h"

namespace octet::data {

// Atomically (base/files.h). UserError where the file cannot be written.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace octet::data

// Images in files of their own.
#pragma once
#include <filesystem>
#include <string>

#include "data/image.h"

namespace octet::data {

// JPEG, PNG, BMP, WebP, PPM or PGM by its name.
bool has_image_ending(const std::filesystem::path& path);
// The names of these formats, for messages: "JPEG, PNG, BMP, WebP, PPM or PGM".
extern const char* const kImageFormats;

// Throw CorruptSample (dataset.h) where the file cannot be read or decoded. For the size no more is read than needed.
ImageSize read_image_size(const std::filesystem::path& path, bool exif_orientation);
std::string read_image_bytes(const std::filesystem::path& path);
Image read_image_file(const std::filesystem::path& path, const DecodeOptions& options);

}  // namespace octet::data

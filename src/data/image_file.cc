#include "data/image_file.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "data/dataset.h"

namespace octet::data {

const char* const kImageFormats = "JPEG, PNG, BMP, WebP, PPM or PGM";

bool has_image_ending(const std::filesystem::path& path) {
  constexpr const char* kEndings[] = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm"};
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(std::begin(kEndings), std::end(kEndings), ending) != std::end(kEndings);
}

ImageSize read_image_size(const std::filesystem::path& path, bool exif_orientation) {
  constexpr size_t kBeginning = size_t{1} << 16;  // bytes; thumbnails and color profiles may take more
  std::string bytes(kBeginning, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  try {
    return image_size(std::as_bytes(std::span(bytes)), exif_orientation);
  } catch (const DecodeError& error) {
    if (bytes.size() < kBeginning) throw CorruptSample(path.string(), file.is_open() ? error.what() : "cannot be read");
  }
  try {
    bytes = read_file(path);
    return image_size(std::as_bytes(std::span(bytes)), exif_orientation);
  } catch (const std::runtime_error& error) {
    throw CorruptSample(path.string(), error.what());
  }
}

std::string read_image_bytes(const std::filesystem::path& path) {
  try {
    return read_file(path);
  } catch (const UserError&) {
    throw CorruptSample(path.string(), "cannot be read");
  }
}

Image read_image_file(const std::filesystem::path& path, const DecodeOptions& options) {
  const std::string bytes = read_image_bytes(path);
  try {
    return decode_image(std::as_bytes(std::span(bytes)), options);
  } catch (const DecodeError& error) {
    throw CorruptSample(path.string(), error.what());
  }
}

}  // namespace octet::data

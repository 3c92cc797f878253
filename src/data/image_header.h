// What an image file is and how large its picture claims to be, from its first bytes: known before a decoder allocates.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace octet::data {

enum class ImageFormat { kUnknown, kJpeg, kPng, kBmp, kWebp, kPnm };

struct ImageHeader {
  ImageFormat format = ImageFormat::kUnknown;
  int64_t width = 0, height = 0;  // pixels; 0 where the header is damaged, and for JPEG and WebP: their decoders tell
};

// Never throws; any bytes are allowed. PNG, BMP and PNM are named only where OpenCV's decoder of that format takes the
// bytes: it looks for a decoder by itself, and one of those that were not meant (DICOM) ends the process when it is
// given a damaged file.
ImageHeader read_image_header(std::span<const std::byte> bytes);

}  // namespace octet::data

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

// Never throws; any bytes are allowed.
ImageHeader read_image_header(std::span<const std::byte> bytes);

}  // namespace octet::data

// BMP files of Windows and OS/2 (Microsoft's BITMAPINFOHEADER and its later forms, BITMAPCOREHEADER).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "data/image.h"

namespace octet::data {

struct BmpSize {
  int64_t width = 0, height = 0;  // as stored; above zero only in sound files
  bool from_top = false;          // of the rows; else from the bottom
};
// Nothing where the bytes do not begin as such a file does. Never throws.
std::optional<BmpSize> read_bmp_size(std::span<const std::byte> bytes);

// `channels` is 1 or 3. Palettes of 1, 4 and 8 bits, also run-length encoded (pixels left out have color 0), 16 bits as
// 5-5-5 or 5-6-5 (the low bits stay 0), 24 bits, 32 bits with masks of 8 bits each, whose fourth byte is dropped.
// Throws DecodeError. The caller has judged the size.
Image decode_bmp(std::span<const std::byte> bytes, int channels);

}  // namespace octet::data

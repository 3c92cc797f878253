// PNG files, by libpng.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "data/image.h"

namespace octet::data {

// `channels` is 1 or 3. Palettes, depths of 1 to 16 bits and interlaced files; alpha is dropped, of 16 bits the upper 8
// remain, gray from colors has libpng's weights of ITU-R 601. Throws DecodeError. The caller has judged the size.
Image decode_png(std::span<const std::byte> bytes, int channels);

// Without loss, of 1 or 3 channels. The same picture gives the same bytes with the same libpng and zlib.
std::string encode_png(const Image& image);

}  // namespace octet::data

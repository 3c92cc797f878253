// Gray from colors where a decoder of bitmaps is asked for one channel.
#pragma once
#include <cstdint>

namespace octet::data {

// The luma of ITU-R 601 in 14 bits, rounded to nearest: the weights of OpenCV's image readers. What is decoded to RGB
// first has those of convert_channels() (image.h), which differ in the last bit.
inline uint8_t bitmap_luma(int red, int green, int blue) {
  return static_cast<uint8_t>((4899 * red + 9617 * green + 1868 * blue + 8192) >> 14);
}

}  // namespace octet::data

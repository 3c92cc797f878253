// How a camera was held: the EXIF tag Orientation of JPEG (APP1), PNG (eXIf) and WebP (EXIF) files.
#pragma once
#include <cstddef>
#include <span>

#include "data/image.h"

namespace octet::data {

// 1 .. 8 as in the EXIF standard; 1 (as it lies) where the file names none or its metadata are damaged. Never throws;
// any bytes are allowed.
int exif_orientation(std::span<const std::byte> file);

// The picture as it is meant to be seen, as Pillow's exif_transpose makes it: 2 mirrored left-right, 3 turned by 180
// degrees, 4 mirrored top-bottom, 5 transposed, 6 turned clockwise, 7 transposed along the other diagonal, 8 turned
// counter-clockwise. 5 to 8 exchange height and width.
Image oriented(Image image, int orientation);

}  // namespace octet::data

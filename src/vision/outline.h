// The way back from a mask to polygons, as annotations of objects have them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "vision/mask.h"

namespace octet::vision {

// x, y, x, y ... of the corners, clockwise as one sees it, along the borders of pixels.
using Outline = std::vector<int64_t>;

// One for each part of the object whose pixels have common sides, by the first pixel row after row. As polygons they
// are the mask (mask_of_polygons). None where a part has a hole, which polygons of COCO cannot say; an empty list for a
// mask without pixels.
std::optional<std::vector<Outline>> outlines(const Mask& mask);

}  // namespace octet::vision

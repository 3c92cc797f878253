// Masks of polygons, the same pixels that COCO's API paints (rleFrPoly of maskApi.c).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "vision/mask.h"

namespace octet::vision {

// x, y, x, y ... of the corners in pixels of the image, as COCO's segmentations have them; the last is joined to the
// first. It may reach beyond the image, and cross itself: what it surrounds twice is outside.
using Polygon = std::vector<double>;

inline constexpr double kMaxPolygonCoordinate = 1e6;               // pixels, either way
inline constexpr int64_t kMaxPolygonCrossings = int64_t{1} << 22;  // of borders with columns of the image, in a polygon

// The union of the polygons, which are the parts of one object. UserError where there is none, one has fewer than three
// corners, half a corner, or a coordinate that is no number or beyond the limit, or crosses the columns too often.
Mask mask_of_polygons(std::span<const Polygon> polygons, int height, int width);

}  // namespace octet::vision

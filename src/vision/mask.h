// The pixels of an object: a binary picture, kept as the lengths of its runs (RLE) as COCO's API has them (Lin et al.
// 2014, maskApi.c), so that a mask of a whole image takes some hundred bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vision/box.h"

namespace octet::vision {

// Does not change once it is made; objects share theirs.
class Mask {
 public:
  static constexpr int64_t kMaxPixels = int64_t{1} << 27;  // of the image
  // height * width; UserError where a side is not positive or there are too many pixels.
  static size_t checked_size(int height, int width);

  // `counts`: lengths of the runs down the columns, column after column (pixel (x, y) has the place x * height + y): of
  // pixels beside the object and in it by turns, beside it first. What an uncompressed segmentation of COCO has.
  // UserError for such sides, and where the counts' sum is not height * width. Empty
  // runs but the first are joined away, so that the same pixels are the same mask.
  Mask(int height, int width, std::span<const uint32_t> counts);

  int height() const { return height_; }
  int width() const { return width_; }
  std::span<const uint32_t> counts() const { return counts_; }
  bool operator==(const Mask&) const = default;

 private:
  int height_, width_;
  std::vector<uint32_t> counts_;
};

// Of a picture, row after row; pixels other than 0 are the object's.
Mask mask_of_pixels(std::span<const uint8_t> pixels, int height, int width);
// The picture, row after row: 0 and 1.
std::vector<uint8_t> pixels(const Mask& mask);

// Pixels of the object.
int64_t area(const Mask& mask);
// The smallest box around them; {0, 0, 0, 0} where there are none.
Box bounds(const Mask& mask);
// Intersection over union, 0 .. 1; 0 where both are empty. Where b is a crowd: intersection over the area of a, as COCO
// compares detections with crowds. Both masks have the same sides.
double iou(const Mask& a, const Mask& b, bool b_is_crowd = false);
// What is in either. Both masks have the same sides.
Mask united(const Mask& a, const Mask& b);

// A mask of rows.size() x columns.size() pixels whose pixel (x, y) is that of column columns[x], row rows[y]; beside
// the object where either is -1. Cuts, mirror images and resizing to the nearest pixel are all of this kind.
Mask gathered(const Mask& mask, std::span<const int> rows, std::span<const int> columns);

}  // namespace octet::vision

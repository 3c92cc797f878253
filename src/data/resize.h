// Change of an image's size.
#pragma once
#include "data/image.h"

namespace octet::data {

// A rectangle of pixels inside an image.
struct Region {
  int top = 0, left = 0, height = 0, width = 0;
};

// Bilinear, pixel centers at half-integers ("align_corners = false"). Where the image shrinks the triangle filter is
// widened by the factor, so that every source pixel counts: the same bits as Pillow's Image.resize(BILINEAR), hence as
// torchvision on PIL images, which is what pretrained networks were made with (OpenCV's INTER_LINEAR would alias).
// Width first, then height; where one side grows and the other shrinks Pillow may take the other order.
// Reads only `region`, which must lie inside the image; height and width are at least 1.
Image resize_bilinear(const Image& image, const Region& region, int height, int width);

Image resize_bilinear(const Image& image, int height, int width);

// The pixels `part` of what resize_bilinear(image, height, width) gives, without making the rest.
Image resize_bilinear_part(const Image& image, int height, int width, const Region& part);

}  // namespace octet::data

// The ways in which libraries change an image's size. Networks expect the one that they learned from.
#pragma once
#include "data/resize.h"
#include "schema/enum_names.h"

namespace octet::data {

enum class Interpolation {
  kAntialias,  // resize_bilinear: where the image shrinks, every pixel counts (Pillow, torchvision)
  kBilinear,   // one sample of four pixels, pixel centers at half-integers (tf.image.resize, OpenCV's INTER_LINEAR)
  // The same with pixel centers at integers, so that the image moves by up to half a pixel of it to the lower right
  // (tf.compat.v1.image.resize_bilinear, align_corners = False); the longer side of a center crop is rounded to the
  // nearest, and what it cuts off at the top and left is rounded down (TF-slim).
  kTensorflow1,
};
std::span<const schema::EnumName<Interpolation>> enum_names(Interpolation);

// The pixels `part` of what becomes of `region` at height x width. Where those libraries give fractions, they are
// rounded to whole values, half a value up. kAntialias takes parts of whole images only.
Image resized_part(const Image& image, const Region& region, int height, int width, const Region& part,
                   Interpolation interpolation);

}  // namespace octet::data

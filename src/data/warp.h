// An image seen through a matrix, row after row.
#pragma once
#include <cstdint>

#include "data/affine.h"
#include "data/image.h"
#include "vision/mask.h"

namespace octet::data {

struct Span {
  int begin = 0, end = 0;  // empty where they are equal
};

// The pixels of row `y` of an output of `out_width` columns whose middles lie in the image. `back` leads from the
// output to the image of `height` x `width` pixels.
Span seen_in_row(const Affine& back, int y, int out_width, int height, int width);

// Where the image becomes smaller it is first shrunk with the filter of resize.h, so that every pixel counts and
// nothing flickers; then every output pixel is one bilinear sample, of bytes, rounded. Where the matrix moves by whole
// pixels, or mirrors, the bytes are those of the image. The image's border is repeated for half a pixel, beyond that
// nothing is seen.
class WarpedImage {
 public:
  // `to_output` leads from the image to the output and must have an inverse. Keeps a reference to `image`.
  WarpedImage(const Image& image, const Affine& to_output, int out_width);

  // Writes the pixels of the span that it returns to `out`, which has room for a row.
  Span row(int y, uint8_t* out) const;

 private:
  const Image& image_;
  Image shrunk_;
  const Image* source_;
  Affine back_, to_source_;  // from the output to `image_`, and to the middles of pixels of `source_`
  int out_width_;
};

// The mask seen through the matrix: each pixel is that of the image on which its middle lies, the pixels that
// WarpedImage shows.
vision::Mask warped(const vision::Mask& mask, const Affine& to_output, int out_height, int out_width);

}  // namespace octet::data

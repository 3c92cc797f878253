// Where the pixels of an image come to lie in the network's input. It is chosen first and then painted, so that boxes
// follow the pixels exactly: part of the image is resized, the input is cut from that, moved and mirrored; or all of it
// goes through one matrix.
#pragma once
#include <optional>

#include "data/affine.h"
#include "data/annotation.h"
#include "data/resize.h"
#include "vision/mask.h"

namespace octet::data {

struct Geometry {
  int height = 0, width = 0;                  // of the network's input
  Region source;                              // part of the image that is resized ...
  int resized_height = 0, resized_width = 0;  // ... to this size;
  int top = 0, left = 0;                      // of the input in the resized part, inside it
  int shift_y = 0,
      shift_x = 0;        // input pixel (y, x) is that of the cut at (y + shift_y, x + shift_x); beyond it: black
  bool mirrored = false;  // left and right, at the end
  // From the image to the input. Where there is one it says all, and `source` is the whole image: what the input shows
  // beside a cut is the image there, and black beyond that.
  std::optional<Affine> warp;
  bool two_corners = false;  // a box becomes the box around two of its moved corners instead of four (TAO)

  // The whole image of height x width, as it is.
  static Geometry whole(int height, int width);

  // What the fields say, as a matrix.
  Affine matrix() const;
  // Borders of pixels, as vision/box.h has them. to_image(to_input(box)) is the box, but for rounding; with a warp that
  // turns, a box around it.
  vision::Box to_input(const vision::Box& in_image) const;
  vision::Box to_image(const vision::Box& in_input) const;
  // The part of the input that shows the image.
  vision::Box visible() const;
};

// A mask of the whole image in the network's input: each pixel is that of the image on which its middle lies (nearest
// neighbor, where images are resized smoothly); beside the image no pixel is the object's.
vision::Mask moved(const vision::Mask& mask, const Geometry& geometry);

// Which objects are left out, when they are moved and cut to what is seen.
struct ClipRule {
  float min_visible = 0;                // share of the box's area, 0 .. 1; those of which no more than this is seen
  float min_width = 0, min_height = 0;  // pixels of the input; those of which less is left
};

// The same in the network's input: boxes are moved and cut to what is visible, masks moved. An object with a mask of
// which no pixel is left is left out, too. Of `others` all is kept that is seen.
Annotation moved(const Annotation& truth, const Geometry& geometry, const ClipRule& rule = {});

}  // namespace octet::data

// The boxes that a detector starts from: the same few shapes around the center of every cell of its feature maps.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "vision/box.h"

namespace octet::vision {

struct AnchorShape {
  float width = 0, height = 0;
  bool operator==(const AnchorShape&) const = default;
};

// One feature map. Cell (row, column) has its center at ((column + offset) * step_x, (row + offset) * step_y).
struct AnchorLevel {
  int rows = 0, columns = 0;
  float step_y = 0, step_x = 0;     // pixels: the stride, or the input's side / cells
  float offset = 0.5f;              // of a step; torchvision's AnchorGenerator: 0
  std::vector<AnchorShape> shapes;  // of each cell, in pixels; YOLO's priors are given as they are

  size_t anchors() const { return static_cast<size_t>(rows) * static_cast<size_t>(columns) * shapes.size(); }
};

// All anchors in the order of the networks' rows: level by level, in each (row, column, shape). They may reach beyond
// the image.
std::vector<Box> make_anchors(std::span<const AnchorLevel> levels);

// Of the sides of the image: borders to [0, side], or as TAO's `clip_boxes` has it: below 0 to 0, and from the side on
// to the last pixel, side - 1.
enum class AnchorClip { kImage, kLastPixel };
void clip_anchors(std::span<Box> anchors, float width, float height, AnchorClip clip = AnchorClip::kImage);

// A shape of size^2 pixels whose width is `ratio` times its height.
AnchorShape anchor_shape(float size, float ratio);

// Each size with each ratio (width / height), sizes outside: Faster R-CNN (Ren et al. 2015) as TAO has it.
std::vector<AnchorShape> size_ratio_shapes(std::span<const float> sizes, std::span<const float> ratios);

// The same as torchvision's AnchorGenerator has it: ratios outside and as height / width, halves of the sides rounded
// to even whole pixels.
std::vector<AnchorShape> torchvision_shapes(std::span<const float> sizes, std::span<const float> ratios);

// size * 2^(i / octaves) for i = 0 .. octaves - 1 (RetinaNet, Lin et al. 2017: three of each level's size, which is 4
// strides).
std::vector<float> octave_sizes(float size, int octaves);

// SSD's default boxes (Liu et al. 2016) and TAO's RetinaNet, whose octaves multiply both sizes.
struct PriorShapes {
  float size = 0;             // pixels: scale of the level * shorter side of the input
  float next_size = 0;        // that of the next level, for the extra box
  std::vector<float> ratios;  // width / height
  bool extra_square = true;   // after ratio 1 another square of side sqrt(size * next_size): TAO's two_boxes_for_ar1
  int octaves = 1;            // as octave_sizes; octaves outside, ratios in their order inside
};
std::vector<AnchorShape> prior_shapes(const PriorShapes& priors);

}  // namespace octet::vision

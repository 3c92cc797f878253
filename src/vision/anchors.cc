#include "vision/anchors.h"

#include <cmath>

#include "base/error.h"

namespace octet::vision {

std::vector<Box> make_anchors(std::span<const AnchorLevel> levels) {
  size_t count = 0;
  for (const AnchorLevel& level : levels) {
    OCTET_CHECK(level.rows >= 0 && level.columns >= 0, level.rows, " x ", level.columns, " cells");
    count += level.anchors();
  }
  std::vector<Box> anchors;
  anchors.reserve(count);
  for (const AnchorLevel& level : levels) {
    for (int row = 0; row < level.rows; ++row) {
      const float y = (static_cast<float>(row) + level.offset) * level.step_y;
      for (int column = 0; column < level.columns; ++column) {
        const float x = (static_cast<float>(column) + level.offset) * level.step_x;
        for (const AnchorShape& shape : level.shapes)
          anchors.push_back({x - shape.width / 2, y - shape.height / 2, x + shape.width / 2, y + shape.height / 2});
      }
    }
  }
  return anchors;
}

void clip_anchors(std::span<Box> anchors, float width, float height, AnchorClip clip) {
  const auto to_last_pixel = [](float v, float side) { return v < 0 ? 0 : v >= side ? side - 1 : v; };
  for (Box& box : anchors) {
    box = clip == AnchorClip::kImage ? clipped(box, width, height)
                                     : Box{to_last_pixel(box.x0, width), to_last_pixel(box.y0, height),
                                           to_last_pixel(box.x1, width), to_last_pixel(box.y1, height)};
  }
}

AnchorShape anchor_shape(float size, float ratio) {
  OCTET_CHECK(size > 0 && ratio > 0, "size ", size, ", ratio ", ratio);
  const float root = std::sqrt(ratio);
  return {size * root, size / root};
}

std::vector<AnchorShape> size_ratio_shapes(std::span<const float> sizes, std::span<const float> ratios) {
  std::vector<AnchorShape> shapes;
  for (const float size : sizes)
    for (const float ratio : ratios) shapes.push_back(anchor_shape(size, ratio));
  return shapes;
}

std::vector<AnchorShape> torchvision_shapes(std::span<const float> sizes, std::span<const float> ratios) {
  std::vector<AnchorShape> shapes;
  for (const float ratio : ratios) {
    const float height = std::sqrt(ratio), width = 1 / height;
    for (const float size : sizes)
      shapes.push_back({2 * std::nearbyint(width * size / 2), 2 * std::nearbyint(height * size / 2)});
  }
  return shapes;
}

std::vector<float> octave_sizes(float size, int octaves) {
  OCTET_CHECK(octaves >= 1, octaves, " octaves");
  std::vector<float> sizes;
  for (int i = 0; i < octaves; ++i)
    sizes.push_back(size * std::exp2(static_cast<float>(i) / static_cast<float>(octaves)));
  return sizes;
}

std::vector<AnchorShape> prior_shapes(const PriorShapes& priors) {
  std::vector<AnchorShape> shapes;
  for (const float factor : octave_sizes(1, priors.octaves)) {
    for (const float ratio : priors.ratios) {
      shapes.push_back(anchor_shape(factor * priors.size, ratio));
      if (ratio == 1 && priors.extra_square)
        shapes.push_back(anchor_shape(factor * std::sqrt(priors.size * priors.next_size), 1));
    }
  }
  return shapes;
}

}  // namespace octet::vision

#include "data/geometry.h"

#include <algorithm>

namespace octet::data {

Geometry Geometry::whole(int height, int width) {
  return {.height = height,
          .width = width,
          .source = {0, 0, height, width},
          .resized_height = height,
          .resized_width = width};
}

vision::Box Geometry::to_input(const vision::Box& b) const {
  const float sx = static_cast<float>(resized_width) / static_cast<float>(source.width);
  const float sy = static_cast<float>(resized_height) / static_cast<float>(source.height);
  const auto x = [&](float v) {
    return (v - static_cast<float>(source.left)) * sx - static_cast<float>(left + shift_x);
  };
  const auto y = [&](float v) { return (v - static_cast<float>(source.top)) * sy - static_cast<float>(top + shift_y); };
  const auto w = static_cast<float>(width);
  return mirrored ? vision::Box{w - x(b.x1), y(b.y0), w - x(b.x0), y(b.y1)}
                  : vision::Box{x(b.x0), y(b.y0), x(b.x1), y(b.y1)};
}

vision::Box Geometry::to_image(const vision::Box& in_input) const {
  const auto w = static_cast<float>(width);
  const vision::Box b = mirrored ? vision::Box{w - in_input.x1, in_input.y0, w - in_input.x0, in_input.y1} : in_input;
  const float sx = static_cast<float>(source.width) / static_cast<float>(resized_width);
  const float sy = static_cast<float>(source.height) / static_cast<float>(resized_height);
  const auto x = [&](float v) {
    return (v + static_cast<float>(left + shift_x)) * sx + static_cast<float>(source.left);
  };
  const auto y = [&](float v) { return (v + static_cast<float>(top + shift_y)) * sy + static_cast<float>(source.top); };
  return {x(b.x0), y(b.y0), x(b.x1), y(b.y1)};
}

vision::Box Geometry::visible() const {
  const auto w = static_cast<float>(width), h = static_cast<float>(height);
  const vision::Box cut = vision::clipped({static_cast<float>(-shift_x), static_cast<float>(-shift_y),
                                           w - static_cast<float>(shift_x), h - static_cast<float>(shift_y)},
                                          w, h);
  return mirrored ? vision::Box{w - cut.x1, cut.y0, w - cut.x0, cut.y1} : cut;
}

Annotation moved(const Annotation& truth, const Geometry& geometry, const ClipRule& rule) {
  Annotation out{.label = truth.label, .objects = {}};
  const vision::Box visible = geometry.visible();
  for (vision::Object object : truth.objects) {
    const vision::Box box = geometry.to_input(object.box);
    object.box = vision::intersection(box, visible);
    if (vision::area(object.box) > rule.min_visible * vision::area(box)) out.objects.push_back(object);
  }
  return out;
}

}  // namespace octet::data

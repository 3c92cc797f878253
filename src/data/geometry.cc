#include "data/geometry.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/warp.h"

namespace octet::data {
namespace {

// The box around the moved corners of `b`: the upper left and the lower right one, or all four.
vision::Box around(const Affine& m, const vision::Box& b, bool two_corners = false) {
  const Point corners[] = {m(b.x0, b.y0), m(b.x1, b.y1), m(b.x1, b.y0), m(b.x0, b.y1)};
  Point low = corners[0], high = corners[0];
  for (const Point& p : std::span(corners).first(two_corners ? 2 : 4)) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  }
  return {static_cast<float>(low.x), static_cast<float>(low.y), static_cast<float>(high.x), static_cast<float>(high.y)};
}

}  // namespace

Geometry Geometry::whole(int height, int width) {
  return {.height = height,
          .width = width,
          .source = {0, 0, height, width},
          .resized_height = height,
          .resized_width = width};
}

Affine Geometry::matrix() const {
  if (warp) return *warp;
  const Affine resized = Affine::scaling(static_cast<double>(resized_width) / source.width,
                                         static_cast<double>(resized_height) / source.height) *
                         Affine::translation(-source.left, -source.top);
  const Affine placed = Affine::translation(-left - shift_x, -top - shift_y) * resized;
  return mirrored ? Affine{.xx = -1, .x0 = static_cast<double>(width)} * placed : placed;
}

vision::Box Geometry::to_input(const vision::Box& b) const {
  if (warp) return around(*warp, b, two_corners);
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
  if (warp) return around(warp->inverse(), in_input, two_corners);
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
  if (warp)
    return vision::clipped(around(*warp, {0, 0, static_cast<float>(source.width), static_cast<float>(source.height)}),
                           w, h);
  const vision::Box cut = vision::clipped({static_cast<float>(-shift_x), static_cast<float>(-shift_y),
                                           w - static_cast<float>(shift_x), h - static_cast<float>(shift_y)},
                                          w, h);
  return mirrored ? vision::Box{w - cut.x1, cut.y0, w - cut.x0, cut.y1} : cut;
}

namespace {

// For each row or column of the input the one of the image; -1: beside it. `size` is of the input, `first` and `length`
// are of the source, `resized` its new length, of which the input shows what begins at `cut`, moved by `shift`.
std::vector<int> sources(int size, int first, int length, int resized, int cut, int shift) {
  std::vector<int> places;
  for (int i = shift; i < size + shift; ++i) {
    const bool seen = i >= 0 && i < size && i + cut >= 0 && i + cut < resized;
    // The middle of a pixel, i + 1/2.
    places.push_back(seen ? first + static_cast<int>((2 * int64_t{i + cut} + 1) * length / (2 * int64_t{resized}))
                          : -1);
  }
  return places;
}

}  // namespace

vision::Mask moved(const vision::Mask& mask, const Geometry& g) {
  OCTET_CHECK(g.source.top + g.source.height <= mask.height() && g.source.left + g.source.width <= mask.width(),
              "a mask of ", mask.height(), " x ", mask.width(), " pixels");
  if (g.warp) return warped(mask, *g.warp, g.height, g.width);
  const std::vector<int> rows = sources(g.height, g.source.top, g.source.height, g.resized_height, g.top, g.shift_y);
  std::vector<int> columns = sources(g.width, g.source.left, g.source.width, g.resized_width, g.left, g.shift_x);
  if (g.mirrored) std::reverse(columns.begin(), columns.end());
  return vision::gathered(mask, rows, columns);
}

Annotation moved(const Annotation& truth, const Geometry& geometry, const ClipRule& rule) {
  Annotation out{.label = truth.label, .objects = {}, .others = {}, .weight = truth.weight};
  const vision::Box visible = geometry.visible();
  for (vision::Object object : truth.objects) {
    const vision::Box box = geometry.to_input(object.box);
    object.box = vision::intersection(box, visible);
    if (!(vision::area(object.box) > rule.min_visible * vision::area(box))) continue;
    if (object.box.width() < rule.min_width || object.box.height() < rule.min_height) continue;
    if (object.mask) {
      object.mask = std::make_shared<const vision::Mask>(moved(*object.mask, geometry));
      if (vision::area(*object.mask) == 0) continue;
    }
    out.objects.push_back(std::move(object));
  }
  for (vision::Object object : truth.others) {
    object.box = vision::intersection(geometry.to_input(object.box), visible);
    if (vision::area(object.box) > 0) out.others.push_back(std::move(object));
  }
  return out;
}

}  // namespace octet::data

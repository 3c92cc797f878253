#include "tasks/detectnet_v2/rasterizer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace octet::tasks::detectnet_v2 {
namespace {

using vision::Object;

// In cells.
struct Ellipse {
  float x, y, radius_x, radius_y;
};

constexpr int kSamples = 4;  // a side of a cell

// The part of the cell inside the ellipse.
float covered(const Ellipse& e, int row, int column) {
  int inside = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (int j = 0; j < kSamples; ++j) {
      const float dx = (static_cast<float>(column) + (static_cast<float>(j) + 0.5f) / kSamples - e.x) / e.radius_x;
      const float dy = (static_cast<float>(row) + (static_cast<float>(i) + 0.5f) / kSamples - e.y) / e.radius_y;
      inside += dx * dx + dy * dy < 1;
    }
  }
  return static_cast<float>(inside) / (kSamples * kSamples);
}

// Half of the box along one axis, towards the border that is nearer to the center.
float half_length(float from, float to, float center, float relative_center) {
  return relative_center < 0.5f ? center - from : to - center;
}

struct Ellipses {
  Ellipse coverage, deadzone;
};

Ellipses ellipses_of(const vision::Box& box, const ClassRaster& c, float deadzone_radius) {
  const auto center_x = static_cast<float>(c.cov_center_x), center_y = static_cast<float>(c.cov_center_y);
  const auto least = static_cast<float>(c.bbox_min_radius);
  const float x = box.x0 + center_x * box.width(), y = box.y0 + center_y * box.height();
  const float half_x = half_length(box.x0, box.x1, x, center_x), half_y = half_length(box.y0, box.y1, y, center_y);
  float radius_x = std::max(static_cast<float>(c.cov_radius_x) * half_x, 0.1f);
  float radius_y = std::max(static_cast<float>(c.cov_radius_y) * half_y, 0.1f);
  // Small ones grow with their shape kept.
  if (radius_x < least) radius_y *= least / radius_x, radius_x = least;
  if (radius_y < least) radius_x *= least / radius_y, radius_y = least;
  const auto with_deadzone = [&](float radius, float half) {
    return std::max(radius, (1 - deadzone_radius) * radius + deadzone_radius * half);
  };
  return {{x, y, radius_x, radius_y}, {x, y, with_deadzone(radius_x, half_x), with_deadzone(radius_y, half_y)}};
}

}  // namespace

void describe(schema::Section& s, ClassRaster& raster) {
  s.field("cov_center_x", raster.cov_center_x).range(0, 1).help("Center of an object's ellipse, of its width.");
  s.field("cov_center_y", raster.cov_center_y).range(0, 1).help("Center of an object's ellipse, of its height.");
  s.field("cov_radius_x", raster.cov_radius_x).range(0, 2).help("Radius of the ellipse, of half the object's width.");
  s.field("cov_radius_y", raster.cov_radius_y).range(0, 2).help("Radius of the ellipse, of half the object's height.");
  s.field("bbox_min_radius", raster.bbox_min_radius)
      .range(0.01, 1000)
      .unit("cells")
      .help("Smaller ellipses grow to this.");
}

void describe(schema::Section& s, RasterizerOptions& rasterizer) {
  s.field("deadzone_radius", rasterizer.deadzone_radius)
      .range(0, 1)
      .help("Zone around the ellipse that belongs to no other object: 0 none, 1 the whole box.");
  describe_by_class(s, rasterizer.classes);
}

GridTruth rasterize(std::span<const Object> objects, const Grid& grid, const RasterizerOptions& options) {
  const auto raster_of = [&](int label) -> const ClassRaster& {
    OCTET_CHECK(label >= 0 && label < grid.classes, "label ", label, " of ", grid.classes);
    return options.classes.of(label);
  };
  GridTruth truth;
  truth.coverage.assign(static_cast<size_t>(grid.coverage_size()), 0);
  truth.coverage_weight = truth.coverage;
  truth.boxes.assign(static_cast<size_t>(grid.box_size()), 0);
  std::vector<float> most(truth.coverage.size(), 0);  // of the object that the cell belongs to

  std::vector<const Object*> order;
  for (const Object& object : objects) order.push_back(&object);
  std::stable_sort(order.begin(), order.end(), [](const Object* a, const Object* b) { return a->box.y1 < b->box.y1; });
  const float stride = static_cast<float>(grid.stride);
  for (const Object* object : order) {
    const vision::Box box{object->box.x0 / stride, object->box.y0 / stride, object->box.x1 / stride,
                          object->box.y1 / stride};
    const auto [ellipse, deadzone] =
        ellipses_of(box, raster_of(object->label), static_cast<float>(options.deadzone_radius));
    const float weight = 1 / std::max(4 * ellipse.radius_x * ellipse.radius_y, 1.0f);
    const auto first = [](float border) { return std::max(0, static_cast<int>(std::floor(std::max(border, 0.0f)))); };
    const auto last = [](float border, int size) {
      return std::min(size - 1, static_cast<int>(std::floor(std::min(border, static_cast<float>(size)))));
    };
    for (int row = first(deadzone.y - deadzone.radius_y); row <= last(deadzone.y + deadzone.radius_y, grid.rows);
         ++row) {
      for (int column = first(deadzone.x - deadzone.radius_x);
           column <= last(deadzone.x + deadzone.radius_x, grid.columns); ++column) {
        const size_t cell = static_cast<size_t>(grid.at(object->label, row, column));
        const auto write = [&](float coverage, const vision::BoxCode& code) {
          truth.coverage[cell] = most[cell] = coverage;
          truth.coverage_weight[cell] = coverage * weight;
          for (int i = 0; i < 4; ++i)
            truth.boxes[static_cast<size_t>(grid.at(4 * object->label + i, row, column))] =
                code[static_cast<size_t>(i)];
        };
        const float in_deadzone = covered(deadzone, row, column), in_ellipse = covered(ellipse, row, column);
        if (in_deadzone > 0 && in_deadzone >= most[cell]) write(0, {});
        if (in_ellipse > 0 && in_ellipse >= most[cell])
          write(in_ellipse, kBoxCoder.encode(object->box, grid.point(column), grid.point(row)));
      }
    }
  }
  return truth;
}

}  // namespace octet::tasks::detectnet_v2

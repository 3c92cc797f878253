// Ground truth of DetectNet_v2: boxes become ellipses of coverage on the grid, with a dead zone around each in which no
// other object may be drawn. Follows TAO's bbox_rasterizer.
#pragma once
#include <span>
#include <vector>

#include "tasks/by_class.h"
#include "tasks/detectnet_v2/grid.h"
#include "vision/box.h"

namespace octet::tasks::detectnet_v2 {

// Names and meaning as in TAO's bbox_rasterizer_config.
struct ClassRaster {
  double cov_center_x = 0.5, cov_center_y = 0.5;  // of the ellipse in the box, 0 .. 1
  double cov_radius_x = 0.4, cov_radius_y = 0.4;  // of the half width and half height
  double bbox_min_radius = 1.0;                   // cells
};
void describe(schema::Section& s, ClassRaster& raster);

struct RasterizerOptions {
  ByClass<ClassRaster> classes;
  double deadzone_radius = 0.67;  // 0: the ellipse itself, 1: the whole box
};
void describe(schema::Section& s, RasterizerOptions& rasterizer);

struct GridTruth {
  std::vector<float> coverage;  // Grid::coverage_size(): the part of a cell inside its ellipse, in sixteenths
  // The same / max(4 * semi-axes, 1): an object's boxes weigh alike, large or small.
  std::vector<float> coverage_weight;
  std::vector<float> boxes;  // Grid::box_size(); 0 where nothing covers the cell
};

// Objects in pixels of the network's input, in any order; drawn by rising lower border, so that nearer ones (lower in
// the image) are on top. A cell belongs to one object of a class. Labels lie in [0, grid.classes).
GridTruth rasterize(std::span<const vision::Object> objects, const Grid& grid, const RasterizerOptions& options);

}  // namespace octet::tasks::detectnet_v2

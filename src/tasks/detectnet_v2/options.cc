#include "tasks/detectnet_v2/options.h"

namespace octet::tasks::detectnet_v2 {

namespace {

void describe_rasterizer(schema::Section& s, RasterizerOptions& rasterizer) {
  ClassRaster& all = rasterizer.classes.at(0);
  s.field("cov_center_x", all.cov_center_x).range(0, 1).help("Center of an object's ellipse, of its width.");
  s.field("cov_center_y", all.cov_center_y).range(0, 1).help("Center of an object's ellipse, of its height.");
  s.field("cov_radius_x", all.cov_radius_x).range(0, 2).help("Radius of the ellipse, of half the object's width.");
  s.field("cov_radius_y", all.cov_radius_y).range(0, 2).help("Radius of the ellipse, of half the object's height.");
  s.field("bbox_min_radius", all.bbox_min_radius)
      .range(0.01, 1000)
      .unit("cells")
      .help("Smaller ellipses grow to this.");
  s.field("deadzone_radius", rasterizer.deadzone_radius)
      .range(0, 1)
      .help("Zone around the ellipse that belongs to no other object: 0 none, 1 the whole box.");
}

void describe_loss(schema::Section& s, LossOptions& loss) {
  s.field("coverage_foreground_weight", loss.coverage_foreground_weight)
      .range(0, 1)
      .help("Weight of the cells more than half covered; the others have 1 - it.");
  s.field("coverage_weight", loss.coverage_weight)
      .range(0, 1e6)
      .known_elsewhere_as({"initial_weight"})
      .help("Of the coverage's cross-entropy, beside bbox_weight.");
  s.field("bbox_weight", loss.bbox_weight).range(0, 1e6).help("Of the distance of the borders.");
  s.field("class_weights", loss.class_weights)
      .range(0, 1e6)
      .known_elsewhere_as({"class_weight"})
      .help("One for each class in order; empty: 1.");
  s.rule("bbox_weight", [&loss]() -> std::string {
    return loss.bbox_weight + loss.coverage_weight > 0 ? "" : "and coverage_weight are 0; nothing would be learned";
  });
}

}  // namespace

void describe(schema::Section& section, Options& options) {
  section.field("stride", options.stride)
      .one_of({4, 8, 16, 32})
      .unit("pixels")
      .help("From one cell of the grid to the next; a level of the backbone.");
  section.section("bbox_rasterizer", [&](schema::Section& s) { describe_rasterizer(s, options.loss.rasterizer); })
      .known_elsewhere_as({"bbox_rasterizer_config"})
      .help("Objects as ellipses of coverage on the grid: what the network learns.");
  section.section("cost_function", [&](schema::Section& s) { describe_loss(s, options.loss); })
      .known_elsewhere_as({"cost_function_config"})
      .help("The loss.");
  section.section("postprocessing", options.postprocessing)
      .known_elsewhere_as({"postprocessing_config", "clustering_config"})
      .help("From the grid to detections.");
  describe_object_metrics(section, options.metrics);
}

}  // namespace octet::tasks::detectnet_v2

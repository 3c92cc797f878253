#include "tasks/detectnet_v2/options.h"

namespace octet::tasks::detectnet_v2 {

OCTET_ENUM_NAMES(Clustering, {Clustering::kDbscan, "dbscan"}, {Clustering::kNms, "nms"})

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

void describe_clustering(schema::Section& s, ClusteringOptions& clustering) {
  s.field("algorithm", clustering.algorithm)
      .known_elsewhere_as({"clustering_algorithm"})
      .help("How the boxes that cells propose become detections. dbscan: the mean of a heap; nms: the best of it.");
  s.field("coverage_threshold", clustering.coverage_threshold)
      .range(0, 1)
      .help("Cells with no more than this propose nothing.");
  s.field("dbscan_eps", clustering.dbscan_eps).range(0, 1).help("Greatest 1 - IoU of two boxes of a heap.");
  s.field("dbscan_min_samples", clustering.dbscan_min_samples)
      .range(0, 1e6)
      .known_elsewhere_as({"minimum_points"})
      .help("Least sum of coverages around the core of a heap.");
  s.field("dbscan_confidence_threshold", clustering.dbscan_confidence_threshold)
      .range(0, 1e6)
      .help("Least score, which is the sum of a heap's coverages.");
  s.field("minimum_bounding_box_height", clustering.minimum_bounding_box_height)
      .range(0, 16384)
      .unit("pixels")
      .help("dbscan drops lower boxes.");
  s.field("nms_iou_threshold", clustering.nms_iou_threshold)
      .range(0, 1)
      .help("nms: a box that overlaps a better one by more is dropped.");
  s.field("nms_confidence_threshold", clustering.nms_confidence_threshold).range(0, 1).help("nms: least score.");
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
  section.section("postprocessing", [&](schema::Section& s) { describe_clustering(s, options.clustering); })
      .known_elsewhere_as({"postprocessing_config", "clustering_config"})
      .help("From the grid to detections.");
  describe_object_metrics(section, options.metrics);
}

}  // namespace octet::tasks::detectnet_v2

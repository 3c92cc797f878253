// From the two outputs of a DetectNet_v2 network to detections: cells that are covered enough propose boxes, and boxes
// that overlap become one detection.
#pragma once
#include <span>
#include <vector>

#include "tasks/detectnet_v2/grid.h"
#include "vision/box.h"

namespace octet::tasks::detectnet_v2 {

enum class Clustering {
  kNms,     // the best covered box of each heap; its score is the coverage
  kDbscan,  // the mean of a heap, weighted by coverage; its score is the sum of the coverages, which may exceed 1
};

// Names and meaning as in TAO's clustering_config.
struct ClusteringOptions {
  Clustering algorithm = Clustering::kDbscan;
  double coverage_threshold = 0.005;       // cells with less propose nothing
  double dbscan_eps = 0.13;                // greatest 1 - IoU of neighbors
  double dbscan_min_samples = 1;           // least sum of coverages around a core box
  double dbscan_confidence_threshold = 0;  // least score
  double minimum_bounding_box_height = 0;  // pixels; DBSCAN drops lower clusters
  double nms_iou_threshold = 0.5;
  double nms_confidence_threshold = 0;  // least score
};

// The boxes that the cells propose for one image, clipped to it, by class; their score is the coverage. `coverage` and
// `boxes` are laid out as grid.h says.
std::vector<vision::Object> propose(std::span<const float> coverage, std::span<const float> boxes, const Grid& grid,
                                    float coverage_threshold);

// Detections of all classes, the best score of each class first.
std::vector<vision::Object> cluster(std::span<const vision::Object> proposals, const ClusteringOptions& options);

}  // namespace octet::tasks::detectnet_v2

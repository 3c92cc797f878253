// How the boxes that cells propose become detections: names and meaning as in TAO's postprocessing_config.
#pragma once
#include <span>
#include <vector>

#include "tasks/by_class.h"
#include "vision/box.h"

namespace octet::tasks::detectnet_v2 {

enum class Clustering {
  kDbscan,  // a heap of boxes becomes their mean, weighted by coverage
  kNms,     // the best covered box of those that overlap; its score is the coverage
  kHybrid,  // nms among the boxes that belong to heaps of DBSCAN
};

// The score of a heap.
enum class Confidence {
  kAggregateCov,  // the sum of the coverages, which may exceed 1
  kMeanCov,       // their mean, 0 .. 1
};

struct ClusteringOptions {
  Clustering algorithm = Clustering::kDbscan;
  double coverage_threshold = 0.005;       // cells with no more propose nothing
  double dbscan_eps = 0.13;                // greatest 1 - IoU of neighbors
  double dbscan_min_samples = 1;           // least sum of coverages around a core box
  double dbscan_confidence_threshold = 0;  // least score of a heap
  Confidence confidence = Confidence::kAggregateCov;
  double minimum_bounding_box_height = 0;  // pixels; what is no higher is dropped
  double nms_iou_threshold = 0.5;
  double nms_confidence_threshold = 0;  // least score
};

struct PostprocessingOptions {
  ByClass<ClusteringOptions> clustering;
  // As TAO evaluates: the confidence thresholds of dbscan and nms are each taken for the other's, dbscan_min_samples
  // is a whole number of at least 1, nms knows no minimum height, counts both borders of a box and keeps no score equal
  // to its threshold, and mean_cov is (mean - least) / (greatest - least), a heap of equal coverages having none. TAO
  // has hybrid in its inference alone, which does not mistake the thresholds.
  bool tao_compatible = false;
};

void describe(schema::Section& section, ClusteringOptions& options);
void describe(schema::Section& section, PostprocessingOptions& options);

// Detections of all classes from the proposals of one image, whose scores are their coverages: by class, the best score
// of each class first.
std::vector<vision::Object> cluster(std::span<const vision::Object> proposals, const PostprocessingOptions& options);

}  // namespace octet::tasks::detectnet_v2

#include "tasks/detectnet_v2/nvinfer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tasks/detectnet_v2/head.h"

namespace octet::tasks::detectnet_v2 {
namespace {

const char* cluster_mode(Clustering algorithm) {
  switch (algorithm) {
    case Clustering::kDbscan:
      return "1";
    case Clustering::kNms:
      return "2";
    case Clustering::kHybrid:
      return "3";
  }
  return "";
}

// nvinfer drops a cell below its threshold before boxes are clustered; under NMS a score is that of one cell.
double cell_threshold(const ClusteringOptions& c) {
  return c.algorithm == Clustering::kNms ? std::max(c.coverage_threshold, c.nms_confidence_threshold)
                                         : c.coverage_threshold;
}

NvinferReading::Keys keys_of(const ClusteringOptions& c) {
  NvinferReading::Keys keys = {{"pre-cluster-threshold", str(cell_threshold(c))}};
  if (c.algorithm != Clustering::kDbscan) {
    keys.push_back({"nms-iou-threshold", str(c.nms_iou_threshold)});
    keys.push_back({"topk", "-1"});
  }
  if (c.algorithm == Clustering::kHybrid) keys.push_back({"post-cluster-threshold", str(c.nms_confidence_threshold)});
  if (c.algorithm != Clustering::kNms) {
    keys.push_back({"eps", str(c.dbscan_eps)});
    keys.push_back({"minBoxes", str(std::max(1, static_cast<int>(c.dbscan_min_samples)))});
    keys.push_back({"dbscan-min-score", str(c.dbscan_confidence_threshold)});
  }
  keys.push_back({"detected-min-h", str(std::lround(std::ceil(c.minimum_bounding_box_height)))});
  return keys;
}

}  // namespace

NvinferReading nvinfer_reading(const PostprocessingOptions& options, int64_t classes) {
  NvinferReading reading{.type = NvinferReading::Type::kDetector, .outputs = {kCoverageOutput, kBoxOutput}};
  const Clustering algorithm = options.clustering.of(0).algorithm;
  reading.property.push_back({"cluster-mode", cluster_mode(algorithm)});
  bool mixed = false, mean = false, heights = false;
  for (int64_t c = 0; c < classes; ++c) {
    const ClusteringOptions& of_class = options.clustering.of(static_cast<int>(c));
    mixed |= of_class.algorithm != algorithm;
    mean |= of_class.algorithm != Clustering::kNms && of_class.confidence == Confidence::kMeanCov;
    heights |= of_class.minimum_bounding_box_height > 0;
    reading.classes.push_back(keys_of(of_class));
  }
  const auto same = [&](const NvinferReading::Keys& keys) { return keys == reading.classes[0]; };
  if (std::all_of(reading.classes.begin(), reading.classes.end(), same)) reading.classes.resize(1);
  if (algorithm != Clustering::kNms)
    reading.remarks.push_back(
        "nvinfer's DBSCAN counts boxes (minBoxes) where Octet and TAO sum up coverages (dbscan_min_samples)");
  if (mixed) reading.remarks.push_back("nvinfer clusters all classes alike, here as the first one");
  if (mean) reading.remarks.push_back("nvinfer's scores of heaps are sums of coverages, not their means");
  if (heights)
    reading.remarks.push_back(
        "detected-min-h counts pixels of the frame, minimum_bounding_box_height those of the network's input");
  return reading;
}

}  // namespace octet::tasks::detectnet_v2

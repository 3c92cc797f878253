#include "tasks/detectnet_v2/postprocessing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "vision/dbscan.h"
#include "vision/nms.h"

namespace octet::tasks::detectnet_v2 {

OCTET_ENUM_NAMES(Clustering, {Clustering::kDbscan, "dbscan"}, {Clustering::kNms, "nms"},
                 {Clustering::kHybrid, "hybrid"})
OCTET_ENUM_NAMES(Confidence, {Confidence::kAggregateCov, "aggregate_cov"}, {Confidence::kMeanCov, "mean_cov"})

namespace {

using vision::Box;
using vision::Object;

// Proposals that DBSCAN puts together, and the detection that they make.
struct Heap {
  std::vector<Object> members;
  Object mean;
};

float confidence_of(const std::vector<Object>& members, Confidence confidence, bool tao_compatible) {
  double sum = 0, least = std::numeric_limits<double>::infinity(), greatest = 0;
  for (const Object& member : members) {
    sum += member.score;
    least = std::min<double>(least, member.score);
    greatest = std::max<double>(greatest, member.score);
  }
  if (confidence == Confidence::kAggregateCov) return static_cast<float>(sum);
  const double mean = sum / static_cast<double>(members.size());
  return static_cast<float>(tao_compatible ? (mean - least) / (greatest - least) : mean);
}

Object mean_of(const std::vector<Object>& members) {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0, weight = 0;
  for (const Object& member : members) {
    const double w = member.score;
    x0 += w * member.box.x0, y0 += w * member.box.y0, x1 += w * member.box.x1, y1 += w * member.box.y1;
    weight += w;
  }
  return {.box = {static_cast<float>(x0 / weight), static_cast<float>(y0 / weight), static_cast<float>(x1 / weight),
                  static_cast<float>(y1 / weight)},
          .label = members.front().label};
}

std::vector<Heap> heaps_of(std::span<const Object> proposals, const ClusteringOptions& options, double threshold,
                           bool tao_compatible) {
  std::vector<Box> boxes;
  std::vector<float> weights;
  for (const Object& proposal : proposals) boxes.push_back(proposal.box), weights.push_back(proposal.score);
  const double least =
      tao_compatible ? std::max(std::trunc(options.dbscan_min_samples), 1.0) : options.dbscan_min_samples;
  const std::vector<int> number = vision::dbscan(
      boxes, weights, {.eps = static_cast<float>(options.dbscan_eps), .min_weight = static_cast<float>(least)});
  std::map<int, Heap> heaps;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (number[i] >= 0) heaps[number[i]].members.push_back(proposals[i]);
  std::vector<Heap> out;
  for (auto& [id, heap] : heaps) {
    heap.mean = mean_of(heap.members);
    heap.mean.score = confidence_of(heap.members, options.confidence, tao_compatible);
    if (!(heap.mean.score >= threshold) || heap.mean.box.height() <= options.minimum_bounding_box_height) continue;
    out.push_back(std::move(heap));
  }
  return out;
}

std::vector<Object> best_of(std::span<const Object> proposals, const ClusteringOptions& options, double threshold,
                            bool tao_compatible) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto least = static_cast<float>(threshold);
  std::vector<Object> out;
  for (const int64_t i :
       vision::nms(proposals, {.iou_threshold = static_cast<float>(options.nms_iou_threshold),
                              .score_threshold = tao_compatible ? std::nextafter(least, kInfinity) : least,
                              .borders = tao_compatible ? vision::Borders::kInclusive : vision::Borders::kExclusive})) {
    const Object& best = proposals[static_cast<size_t>(i)];
    if (tao_compatible || best.box.height() > options.minimum_bounding_box_height) out.push_back(best);
  }
  return out;
}

// Of one class.
std::vector<Object> cluster_class(std::span<const Object> proposals, const ClusteringOptions& options, bool tao) {
  const double of_dbscan = options.dbscan_confidence_threshold, of_nms = options.nms_confidence_threshold;
  std::vector<Object> out;
  switch (options.algorithm) {
    case Clustering::kDbscan:
      for (const Heap& heap : heaps_of(proposals, options, tao ? of_nms : of_dbscan, tao)) out.push_back(heap.mean);
      return out;
    case Clustering::kNms:
      return best_of(proposals, options, tao ? of_dbscan : of_nms, tao);
    case Clustering::kHybrid:
      for (const Heap& heap : heaps_of(proposals, options, of_dbscan, tao))
        out.insert(out.end(), heap.members.begin(), heap.members.end());
      return best_of(out, options, of_nms, tao);
  }
  return out;
}

}  // namespace

void describe(schema::Section& s, ClusteringOptions& clustering) {
  s.field("clustering_algorithm", clustering.algorithm)
      .known_elsewhere_as({"algorithm"})
      .help(
          "How the boxes that cells propose become detections. dbscan: the mean of a heap of boxes; nms: the best of "
          "those that overlap; hybrid: nms among the boxes that belong to heaps.");
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
      .help("dbscan, hybrid: least confidence of a heap.");
  s.field("confidence_model", clustering.confidence)
      .help(
          "Confidence of a heap, which is the score of its detection. aggregate_cov: the sum of its coverages, which "
          "grows with the object and may exceed 1; mean_cov: their mean.");
  s.field("minimum_bounding_box_height", clustering.minimum_bounding_box_height)
      .range(0, 16384)
      .unit("pixels")
      .help("Detections that are no higher are dropped.");
  s.field("nms_iou_threshold", clustering.nms_iou_threshold)
      .range(0, 1)
      .help("nms, hybrid: a box that overlaps a better one by more is dropped.");
  s.field("nms_confidence_threshold", clustering.nms_confidence_threshold)
      .range(0, 1)
      .help("nms, hybrid: least score.");
}

void describe(schema::Section& section, PostprocessingOptions& options) {
  describe_by_class(section, options.clustering);
  section.field("tao_compatible", options.tao_compatible)
      .help(
          "Cluster as TAO's evaluation does: the confidence thresholds of dbscan and nms are each taken for the "
          "other's, dbscan_min_samples is cut to a whole number of at least 1, nms knows no minimum height and counts "
          "both borders of a box.");
}

std::vector<Object> cluster(std::span<const Object> proposals, const PostprocessingOptions& options) {
  std::map<int, std::vector<Object>> classes;
  for (const Object& proposal : proposals) classes[proposal.label].push_back(proposal);
  std::vector<Object> out;
  for (const auto& [label, of_class] : classes) {
    std::vector<Object> found = cluster_class(of_class, options.clustering.of(label), options.tao_compatible);
    std::stable_sort(found.begin(), found.end(), [](const Object& a, const Object& b) { return a.score > b.score; });
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

}  // namespace octet::tasks::detectnet_v2

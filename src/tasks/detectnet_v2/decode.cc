#include "tasks/detectnet_v2/decode.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "vision/dbscan.h"
#include "vision/nms.h"

namespace octet::tasks::detectnet_v2 {
namespace {

using vision::Box;
using vision::Object;

std::vector<Object> cluster_by_nms(std::span<const Object> proposals, const ClusteringOptions& options) {
  std::vector<Object> out;
  for (const int64_t i : vision::nms(proposals, {.iou_threshold = static_cast<float>(options.nms_iou_threshold),
                                                .score_threshold = static_cast<float>(options.nms_confidence_threshold),
                                                .borders = vision::Borders::kInclusive}))
    out.push_back(proposals[static_cast<size_t>(i)]);
  return out;
}

std::vector<Object> cluster_by_dbscan(std::span<const Object> proposals, const ClusteringOptions& options) {
  std::map<int, std::vector<const Object*>> classes;
  for (const Object& proposal : proposals) classes[proposal.label].push_back(&proposal);
  std::vector<Object> out;
  for (const auto& [label, members] : classes) {
    std::vector<Box> boxes;
    std::vector<float> weights;
    for (const Object* member : members) boxes.push_back(member->box), weights.push_back(member->score);
    const std::vector<int> cluster = vision::dbscan(
        boxes, weights,
        {.eps = static_cast<float>(options.dbscan_eps), .min_weight = static_cast<float>(options.dbscan_min_samples)});
    struct Sum {
      double x0 = 0, y0 = 0, x1 = 0, y1 = 0, weight = 0;
    };
    std::map<int, Sum> sums;
    for (size_t i = 0; i < boxes.size(); ++i) {
      if (cluster[i] < 0) continue;
      Sum& sum = sums[cluster[i]];
      const double w = weights[i];
      sum.x0 += w * boxes[i].x0, sum.y0 += w * boxes[i].y0, sum.x1 += w * boxes[i].x1, sum.y1 += w * boxes[i].y1;
      sum.weight += w;
    }
    for (const auto& [id, sum] : sums) {
      const Object object{.box = {static_cast<float>(sum.x0 / sum.weight), static_cast<float>(sum.y0 / sum.weight),
                                  static_cast<float>(sum.x1 / sum.weight), static_cast<float>(sum.y1 / sum.weight)},
                          .label = label,
                          .score = static_cast<float>(sum.weight)};
      if (object.score < options.dbscan_confidence_threshold) continue;
      if (object.box.height() <= options.minimum_bounding_box_height) continue;
      out.push_back(object);
    }
  }
  return out;
}

}  // namespace

std::vector<Object> propose(std::span<const float> coverage, std::span<const float> boxes, const Grid& grid,
                            float coverage_threshold) {
  OCTET_CHECK(static_cast<int64_t>(coverage.size()) == grid.coverage_size() &&
                  static_cast<int64_t>(boxes.size()) == grid.box_size(),
              coverage.size(), " and ", boxes.size());
  const float width = static_cast<float>(grid.width()), height = static_cast<float>(grid.height());
  std::vector<Object> out;
  for (int label = 0; label < grid.classes; ++label) {
    for (int row = 0; row < grid.rows; ++row) {
      for (int column = 0; column < grid.columns; ++column) {
        const float score = coverage[static_cast<size_t>(grid.at(label, row, column))];
        if (!(score > coverage_threshold)) continue;
        const auto code = [&](int i) { return boxes[static_cast<size_t>(grid.at(4 * label + i, row, column))]; };
        const float x = grid.point(column), y = grid.point(row);
        Box box = vision::clipped(kBoxCoder.decode({code(0), code(1), code(2), code(3)}, x, y), width, height);
        box.x1 = std::max(box.x0, box.x1), box.y1 = std::max(box.y0, box.y1);
        out.push_back({.box = box, .label = label, .score = score});
      }
    }
  }
  return out;
}

std::vector<Object> cluster(std::span<const Object> proposals, const ClusteringOptions& options) {
  std::vector<Object> out = options.algorithm == Clustering::kNms ? cluster_by_nms(proposals, options)
                                                                  : cluster_by_dbscan(proposals, options);
  std::stable_sort(out.begin(), out.end(), [](const Object& a, const Object& b) {
    return a.label != b.label ? a.label < b.label : a.score > b.score;
  });
  return out;
}

}  // namespace octet::tasks::detectnet_v2

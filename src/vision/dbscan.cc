#include "vision/dbscan.h"

#include <cstddef>

#include "base/error.h"

namespace octet::vision {

std::vector<int> dbscan(std::span<const Box> boxes, std::span<const float> weights, const DbscanOptions& options) {
  OCTET_CHECK(weights.size() == boxes.size(), weights.size(), " weights of ", boxes.size(), " boxes");
  std::vector<std::vector<size_t>> neighbors(boxes.size());
  std::vector<double> weight(boxes.size(), 0);
  for (size_t a = 0; a < boxes.size(); ++a) {
    for (size_t b = 0; b < boxes.size(); ++b) {
      if (a != b && 1 - iou(boxes[a], boxes[b], options.borders) > options.eps) continue;
      neighbors[a].push_back(b);
      weight[a] += weights[b];
    }
  }
  std::vector<int> cluster(boxes.size(), -1);
  int clusters = 0;
  std::vector<size_t> todo;
  const auto take = [&](size_t box) {
    if (cluster[box] != -1) return;
    cluster[box] = clusters;
    if (weight[box] >= options.min_weight) todo.push_back(box);
  };
  for (size_t first = 0; first < boxes.size(); ++first) {
    if (cluster[first] != -1 || !(weight[first] >= options.min_weight)) continue;
    take(first);
    while (!todo.empty()) {
      const size_t core = todo.back();
      todo.pop_back();
      for (const size_t box : neighbors[core]) take(box);
    }
    ++clusters;
  }
  return cluster;
}

}  // namespace octet::vision

// The order in which metrics take detections.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "vision/box.h"

namespace octet::metrics {

// Falling scores, NaN last.
inline bool surer(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return a > b;
}

// Indices of the detections, the surest first, equal ones as given.
inline std::vector<size_t> order_by_score(std::span<const vision::Object> detections) {
  std::vector<size_t> order(detections.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return surer(detections[a].score, detections[b].score); });
  return order;
}

}  // namespace octet::metrics

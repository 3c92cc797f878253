// Non-maximum suppression: one detection for each thing.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "vision/box.h"

namespace octet::vision {

struct NmsOptions {
  float iou_threshold = 0.5f;   // a box that overlaps a better one by more is dropped
  float score_threshold = 0;    // boxes with a lower score, or NaN, do not take part
  int64_t candidates = 0;       // of each class, the best that take part; 0: all
  int64_t most = 0;             // in all that are kept; 0: all
  bool across_classes = false;  // true: a box suppresses those of other classes, too
  Borders borders = Borders::kExclusive;
};

// Indices of the objects that are kept, the best score first, among equal scores the lower index. Greedy, quadratic in
// the candidates of a class.
std::vector<int64_t> nms(std::span<const Object> objects, const NmsOptions& options = {});

}  // namespace octet::vision
